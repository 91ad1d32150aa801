"""Responses with server-sent events that last as long as the client reads."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from hubgate.server.errors import HubError
from hubgate.server.http.asgi import Message, Receive, Scope, Send
from hubgate.server.http.streaming import send_in_time
from hubgate.server.jobs.caller import ClientLeft
from hubgate.server.webhooks.stream.live import LiveStreams, Part, Stream

STREAM_TYPE = "text/event-stream"
COMMENT = b":\n\n"
_HEADERS = [
    (b"content-type", STREAM_TYPE.encode()),
    (b"cache-control", b"no-store"),
    # Otherwise nginx collects events before it forwards them.
    (b"x-accel-buffering", b"no"),
]

# Reads the part after a cursor. Raises a HubError if the caller has lost the permission, which ends the stream.
ReadNext = Callable[[Stream, int], Awaitable[Part]]


class EventStream:
    """A stream of server-sent events. When the caller loses the permission, the webhook or Space is deleted, events are
    missing or the process stops, the stream ends: the client connects again, and gets an error or the following events.
    """

    def __init__(
        self,
        live: LiveStreams,
        followed_id: str,
        user: str,
        first: Part,
        read_next: ReadNext,
        keep_alive: bytes = COMMENT,
    ) -> None:
        self._live, self._followed_id, self._user = live, followed_id, user
        self._first, self._read_next, self._keep_alive = first, read_next, keep_alive

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        disconnected = asyncio.ensure_future(receive())
        try:
            with self._live.follow(self._followed_id, self._user) as stream:
                disconnected.add_done_callback(lambda _: stream.end())
                await self._send(send, {"type": "http.response.start", "status": 200, "headers": _HEADERS})
                # Servers send the headers together with the first part.
                await self._send(send, _body(self._keep_alive))
                with contextlib.suppress(HubError):
                    await self._stream(stream, send)
            if disconnected.done():
                raise ClientLeft
            await self._send(send, {"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            disconnected.cancel()

    async def _stream(self, stream: Stream, send: Send) -> None:
        part = self._first
        while True:
            if part.data:
                await self._send(send, _body(part.data))
            if stream.latest <= part.cursor:
                await stream.wait(part.cursor, self._live.comment_seconds)
            if stream.has_ended:
                return
            if stream.latest <= part.cursor:
                await self._send(send, _body(self._keep_alive))
            part = await self._read_next(stream, part.cursor)

    async def _send(self, send: Send, message: Message) -> None:
        await send_in_time(send, message, self._live.stall_seconds)


def _body(data: bytes) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": True}
