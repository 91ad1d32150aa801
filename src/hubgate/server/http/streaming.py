"""An answer that is made while it is sent, for what is too large to be in memory at once."""

import asyncio
from collections.abc import AsyncGenerator, Mapping

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

LONGEST_STALL = 5 * 60.0


class Streamed:
    """`parts` are made one after the other, each when the one before is on its way.

    It is closed here, however this ends: Starlette's own would leave it to the garbage collector when the client goes.
    A client that went away is noticed between two parts, so that a look-up under way is never torn. One that takes
    nothing for long is as good as gone: what waits for it may be a program, a file, a place others wait for.
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
        gone = asyncio.ensure_future(receive())
        try:
            # What fails before the first part can still be answered with an error.
            part: bytes | None = await anext(self._parts, None)
            await self._in_time(send, {"type": "http.response.start", "status": self._status, "headers": self._headers})
            while part is not None:
                if gone.done():
                    # Not ended as if it were whole: somebody may still be reading.
                    raise ClientDisconnect
                await self._in_time(send, {"type": "http.response.body", "body": part, "more_body": True})
                part = await anext(self._parts, None)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            await self._parts.aclose()

    async def _in_time(self, send: Send, message: Message) -> None:
        try:
            async with asyncio.timeout(self._longest_stall):
                await send(message)
        except TimeoutError:
            raise ClientDisconnect from None
