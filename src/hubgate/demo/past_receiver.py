"""The receiver of the seeded month: it answers as well-meant software does, with a bad week."""

import asyncio
import json

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

# Days on which the training service was being deployed: the first attempt fails, a retry succeeds.
_DEPLOYMENTS = (3, 11, 19, 26)
# A day on which the chat service was down until the evening, and one on which it could not read some messages.
_OUTAGE = 9
_UNREADABLE = 18


class PastReceiver:
    def __init__(self) -> None:
        self._day = 0
        self._failed: set[str] = set()
        self._unreadable: set[str] = set()
        self.app = Starlette(
            routes=[
                Route("/webhooks/train", self._train, methods=["POST"]),
                Route("/webhooks/chat", self._chat, methods=["POST"]),
            ]
        )

    def begin_day(self, day: int) -> None:
        self._day = day

    async def _train(self, request: Request) -> Response:
        await request.body()
        delivery = request.headers.get("webhook-id", "")
        # Times to answer differ, as those of real receivers.
        await asyncio.sleep(0.002 * (1 + self._day % 5))
        if self._day in _DEPLOYMENTS and delivery not in self._failed:
            self._failed.add(delivery)
            return PlainTextResponse("Deploying, try again.", 503)
        return PlainTextResponse("training started")

    async def _chat(self, request: Request) -> Response:
        event = json.loads(await request.body()).get("event", {})
        delivery = request.headers.get("webhook-id", "")
        await asyncio.sleep(0.001 * (1 + self._day % 7))
        if self._day == _OUTAGE:
            return PlainTextResponse("Bad gateway", 502)
        if self._day == _UNREADABLE and event.get("scope") == "repo.content":
            self._unreadable.add(delivery)
        if delivery in self._unreadable:
            return PlainTextResponse("KeyError: 'channel'", 500)
        return PlainTextResponse("posted")
