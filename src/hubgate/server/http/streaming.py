"""Streaming responses, for content that is too large to be in memory at once."""

import asyncio
from collections.abc import AsyncGenerator, Mapping

from hubgate.server.http.asgi import ClientDisconnect, Message, Receive, Scope, Send

LONGEST_STALL = 5 * 60.0


class StreamedResponse:
    """A response that produces the next part only after the previous part was sent.

    `parts` is always closed here; Starlette would leave that to the garbage collector when the client disconnects. A
    disconnect is checked between two parts, so that a running query is never interrupted. A client that reads nothing
    for `longest_stall` seconds counts as disconnected, because it blocks a subprocess, a file or a slot.
    """

    def __init__(
        self,
        parts: AsyncGenerator[bytes, None],
        headers: Mapping[str, str],
        status: int = 200,
        longest_stall: float = LONGEST_STALL,
    ) -> None:
        self._parts = parts
        self._longest_stall = longest_stall
        self._status = status
        self._headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        disconnect = asyncio.ensure_future(receive())
        try:
            # A failure before the first part can still be answered with an error.
            part: bytes | None = await anext(self._parts, None)
            start = {"type": "http.response.start", "status": self._status, "headers": self._headers}
            await send_in_time(send, start, self._longest_stall)
            while part is not None:
                if disconnect.done():
                    # Do not end the response as if it were complete: the client may still be reading.
                    raise ClientDisconnect
                body = {"type": "http.response.body", "body": part, "more_body": True}
                await send_in_time(send, body, self._longest_stall)
                part = await anext(self._parts, None)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            disconnect.cancel()
            await self._parts.aclose()


async def send_in_time(send: Send, message: Message, longest_stall: float) -> None:
    """Send a message. A client that accepts nothing for `longest_stall` seconds counts as disconnected."""
    try:
        async with asyncio.timeout(longest_stall):
            await send(message)
    except TimeoutError:
        raise ClientDisconnect from None
