"""The demo's webhook receiver: it trains when the dataset changes, and reports every other change of the organization.

Training takes no time here: the result is a file that is committed to the model.
"""

import json
import warnings
from collections.abc import Callable

from hubgate.client import Hub, HubgateError
from hubgate.demo.content import REVIEWS, SENTIMENT

with warnings.catch_warnings():
    # The receiver library is experimental, which users of the demo need not know.
    warnings.simplefilter("ignore")
    from hubgate.receiver import WebhookPayload, WebhooksServer

RESULT = "training.json"


def create_receiver(hub: str, token: str, secret: str, report: Callable[[str], None]) -> WebhooksServer:
    """`report` is called with a line for each delivery."""
    receiver = WebhooksServer(webhook_secret=secret)

    @receiver.add_webhook
    def train(payload: WebhookPayload) -> dict[str, str]:
        """Commits the result of a training to the model."""
        sha = payload.repo.head_sha or ""
        if payload.event.scope != "repo.content":
            return {"skipped": payload.event.scope}
        report(f"{payload.repo.name} is now at {sha[:8]}: training {SENTIMENT}")
        try:
            # In the delivery's context the client sends its depth, so that the hub ends endless chains of events.
            with Hub(hub, token) as client:
                result = json.dumps({"dataset": REVIEWS, "revision": sha, "accuracy": 0.91}, indent=2)
                client.upload(SENTIMENT, {RESULT: result.encode()}, message=f"Trained on {REVIEWS} {sha[:8]}")
        except HubgateError as error:
            # The hub repeats a delivery that fails.
            report(f"training failed: {error}")
            raise
        return {"trained": sha}

    @receiver.add_webhook
    def chat(payload: WebhookPayload) -> None:
        """Reports what happened in the organization."""
        report(f"{payload.event.scope} {payload.event.action} in {payload.repo.name}")

    return receiver
