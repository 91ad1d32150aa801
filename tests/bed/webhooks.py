"""Webhooks in tests: a receiver on a real socket, and delivery on demand with a frozen clock."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

import httpx
from msgspec.structs import replace
from tests.bed.running_hub import RunningHub

from hubgate.server.resources import Hub
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering.deliverer import Deliverer
from hubgate.server.webhooks.fanout.fanning import FanOut
from hubgate.server.webhooks.sealed_secrets import opened_secret

T = TypeVar("T")
LOGS = "/api/settings/webhooks/{}/logs"


def within(hub: RunningHub, work: Callable[[Webhooks], Awaitable[T]]) -> T:
    return hub.call(lambda opened: work(opened.webhooks))


def logs(ada: httpx.Client, webhook: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ada.get(LOGS.format(webhook["id"])).json()
    return found


def secret_of(hub: RunningHub, webhook_id: str) -> str | None:
    """The stored secret of a webhook, which no response contains (attack O74)."""

    async def work(opened: Hub) -> str | None:
        row = await opened.db.one("SELECT secret FROM webhooks WHERE id = :id", {"id": webhook_id})
        assert row is not None
        return None if row["secret"] is None else opened_secret(opened.webhooks.secret, webhook_id, row["secret"])

    return hub.call(work)


@dataclass
class Received:
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        payload: dict[str, Any] = json.loads(self.body)
        return payload

    @property
    def kind(self) -> str:
        event = self.json["event"]
        return f"{event['scope']} {event['action']}"


@dataclass
class _Permits:
    """One response for each, in the order of arrival."""

    count: int = 0
    arrived: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def add(self, count: int) -> None:
        with self._changed:
            # Requests that have started may arrive later than others that the first response lets start.
            self._changed.wait_for(lambda: self.arrived >= self.count + count, 60)
            self.count += count
            self._changed.notify_all()

    def wait(self) -> None:
        with self._changed:
            self.arrived += 1
            self._changed.notify_all()
            place = self.arrived
            self._changed.wait_for(lambda: place <= self.count, 120)


@dataclass
class Receiver:
    url: str
    status: int = 200
    answer: bytes = b"{}"
    answer_headers: dict[str, str] = field(default_factory=dict)
    received: list[Received] = field(default_factory=list)
    # While it is not None, each response waits for a permit.
    _permits: "_Permits | None" = None

    def hold(self) -> None:
        """Withhold responses until `release`."""
        self._permits = _Permits()

    def release(self, count: int) -> None:
        """Let the next requests be answered in the order of their arrival, with the status and body of that moment."""
        assert self._permits is not None
        self._permits.add(count)

    def wait_for_permit(self) -> None:
        if (permits := self._permits) is not None:
            permits.wait()

    def stop_holding(self) -> None:
        """Answer later requests at once. Those that wait already stay unanswered."""
        self._permits = None

    @property
    def kinds(self) -> list[str]:
        return [delivery.kind for delivery in self.received]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # All connections of a busy process at once.
    request_queue_size = 256

    def handle_error(self, *_: object) -> None:
        """A sender that closes the connection before the response is nothing to report."""


@contextmanager
def run_receiver() -> Iterator[Receiver]:
    receiver = Receiver("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Otherwise the body waits 40 ms for the sender's acknowledgement of the headers.
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.received.append(Received(headers, body))
            receiver.wait_for_permit()
            self.send_response(receiver.status)
            for name, value in receiver.answer_headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(receiver.answer)))
            self.end_headers()
            self.wfile.write(receiver.answer)

        def log_message(self, *_: object) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


@asynccontextmanager
async def only_deliverer(webhooks: Webhooks, silence_seconds: float | None = 0) -> AsyncIterator[Deliverer]:
    """A deliverer that owns all shards, without loops: tests call its steps."""
    # It never looks dead: it has no loop that sends heartbeats.
    patient = replace(webhooks, pace=replace(webhooks.pace, dead_after_seconds=3600.0))
    deliverer = Deliverer(patient, asyncio.Event(), silence_seconds=silence_seconds)
    await deliverer.ownership.start()
    await deliverer.beat()
    if deliverer.moving is not None:
        await deliverer.moving
    try:
        yield deliverer
    finally:
        deliverer.dispatch.is_void = True
        deliverer.dispatch.sender.abort()
        await deliverer.ownership.end()


async def deliver_due(webhooks: Webhooks, silence_seconds: float | None = 0) -> int:
    """Fan out and send until nothing is due by the hub's clock; the number of attempts."""
    attempts = 0
    async with only_deliverer(webhooks, silence_seconds) as deliverer:
        while True:
            while await FanOut(webhooks, deliverer).step():
                pass
            await deliverer.look()
            attempts += len(deliverer.dispatch.batch.results)
            busy = [await deliverer.store_some(), await deliverer.check_some()]
            if deliverer.dispatch.queue.in_flight:
                await asyncio.sleep(0.001)
            elif not any(busy) and not deliverer.dispatch.batch:
                return attempts


def settle(hub: RunningHub) -> int:
    """Deliver everything that is due, without the delay that hides network errors (attack W18)."""
    return hub.call(lambda opened: deliver_due(opened.webhooks))


def create_webhook(client: httpx.Client, url: str, *watched: str, **more: Any) -> dict[str, Any]:
    """Create a webhook. Each of `watched` is `type:name`."""
    watches = [dict(zip(("type", "name"), text.split(":"), strict=True)) for text in watched]
    response = client.post("/api/settings/webhooks", json={"url": url, "watched": watches, **more})
    assert response.status_code == 200, response.text
    created: dict[str, Any] = response.json()["webhook"]
    return created
