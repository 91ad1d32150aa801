"""A webhook receiver that trains a model when the main branch of a dataset changes.

It answers at once, trains afterwards, and continues after a restart. The training here is a stand-in: it counts words.
"""

import json
import os
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from hubgate import Hub
from hubgate.receiver import WebhookPayload, WebhooksServer

# With HUBGATE_ENDPOINT, HUBGATE_TOKEN and WEBHOOK_SECRET from the environment.
hub = Hub()
MODEL = os.environ["MODEL"]
app = WebhooksServer(ack="before", inbox=os.environ.get("INBOX", "inbox.db"))


def train(folder: Path) -> dict[str, int]:
    words: Counter[str] = Counter()
    for path in folder.rglob("*.txt"):
        words.update(path.read_text().split())
    return dict(words)


@app.on("repo.content", type="dataset")
def retrain(payload: WebhookPayload) -> None:
    if "refs/heads/main" not in {ref.ref for ref in payload.updated_refs or ()}:
        return
    # Several pushes may be waiting: the newest content is what counts, and training it twice changes nothing.
    with TemporaryDirectory() as folder:
        hub.download_all(payload.repo.name, Path(folder), type="dataset")
        weights = json.dumps(train(Path(folder)), sort_keys=True)
    message = f"Trained on {payload.repo.name} at {payload.repo.head_sha}"
    hub.create_repo(MODEL, exist_ok=True)
    hub.upload(MODEL, {"weights.json": weights.encode()}, message=message)
    print(message, flush=True)


if __name__ == "__main__":
    app.launch(port=int(os.environ.get("PORT", "7860")))
