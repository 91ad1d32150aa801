"""Receivers for any number of webhooks: one asyncio server, with a path for each webhook.

The server records when each request began, and when it was answered or its connection ended, as the limit of concurrent
requests counts them.
"""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tests.faults.history import Change, ReceivedRequest


@dataclass
class Watchers:
    host: str = "127.0.0.1"
    # The delay in seconds and the status of the response, by the webhook's path; None hangs until the connection ends,
    # or until `respond` is called.
    answer: Callable[[str], tuple[float, int] | None] = lambda _: (0.0, 200)
    received: list[ReceivedRequest] = field(default_factory=list)
    # The number of requests without a response, and of those that are not in `received` yet.
    waiting: int = 0

    def __post_init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._open: set[asyncio.Task[None]] = set()
        self._hanging: set[asyncio.Future[tuple[float, int]]] = set()
        self._server: asyncio.Server | None = None
        self._port = 0
        self.listen()

    def url(self, name: str) -> str:
        return f"http://{self.host}:{self._port}/{name}"

    def respond(self, status: int) -> None:
        """Respond to all requests that hang."""
        self._run(self._respond(status))

    def stop_listening(self) -> None:
        """Close the port and every connection."""
        self._run(self._stop_listening())

    def listen(self) -> None:
        self._run(self._listen())

    def close(self) -> None:
        self.stop_listening()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    def _run(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)  # type: ignore[arg-type]

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, self.host, self._port, backlog=2048)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _respond(self, status: int) -> None:
        for each in self._hanging:
            each.set_result((0.0, status))

    async def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            while await self._one(reader, writer):
                pass
        except (OSError, EOFError, asyncio.CancelledError):
            # The sender was killed, or this server stopped.
            pass
        finally:
            self._open.discard(task)
            writer.transport.abort()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        began = time.monotonic()
        lines = head.split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
        body = await reader.readexactly(int(headers["content-length"]))
        address = lines[0].split(" ")[1].removeprefix("/")
        self.waiting += 1
        status, was_dropped = None, False
        try:
            answer = self.answer(address)
            # No second request is sent before the first is answered, so readable data means that the connection ended.
            disconnect = asyncio.ensure_future(reader.read(1))
            if answer is None:
                answer = await self._hang(disconnect)
            if answer is not None:
                await asyncio.wait([disconnect], timeout=answer[0])
            done = disconnect.done()
            if not done:
                disconnect.cancel()
                await asyncio.gather(disconnect, return_exceptions=True)
                assert answer is not None
                writer.write(b"HTTP/1.1 %d X\r\nContent-Length: 2\r\n\r\n{}" % answer[1])
                await writer.drain()
                status = answer[1]
        except asyncio.CancelledError:
            was_dropped = True
            raise
        finally:
            request = _received_request(address, headers, body, began)
            self.received.append(replace(request, status=status, was_dropped=was_dropped))
            self.waiting -= 1
        return not done

    async def _hang(self, disconnect: "asyncio.Future[bytes]") -> tuple[float, int] | None:
        """The response given to `respond`; None if the connection ends before."""
        response: asyncio.Future[tuple[float, int]] = self._loop.create_future()
        self._hanging.add(response)
        try:
            either: list[asyncio.Future[Any]] = [disconnect, response]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            return response.result() if response.done() else None
        finally:
            self._hanging.discard(response)


def _received_request(address: str, headers: dict[str, str], body: bytes, began: float) -> ReceivedRequest:
    payload = json.loads(body)
    change = Change(payload["repo"]["name"], int(headers["x-hubgate-sequence"]))
    webhook, delivery = headers["x-hubgate-webhook"], headers["webhook-id"]
    return ReceivedRequest(
        address, webhook, delivery, int(headers["x-hubgate-attempt"]), change, body, began, time.monotonic()
    )


def with_webhook_names(received: list[ReceivedRequest], names: dict[str, str]) -> list[ReceivedRequest]:
    """The requests with the name of each webhook instead of its id."""
    return [replace(request, webhook=names.get(request.webhook, request.webhook)) for request in received]


@contextmanager
def run_watchers(host: str = "127.0.0.1") -> Iterator[Watchers]:
    watchers = Watchers(host)
    try:
        yield watchers
    finally:
        watchers.close()
