"""Reading a request's body: so much, in so much time, and no further."""

import asyncio
import contextlib

from hubgate.receiver.asgi import Receive, Scope, header_values

# Payloads end at 256 KiB and a little.
MOST_BYTES = 1024 * 1024
SECONDS = 20.0
DRAIN_SECONDS = 2.0


class BodyRefused(Exception):
    """With the status that says why."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


class Gone(Exception):
    """The sender left in the middle; there is nobody to answer."""


class Body:
    """A request's body, read by one."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._scope, self._receive = scope, receive
        self._ended = False

    async def read(self) -> bytes:
        """Raises BodyRefused, or Gone."""
        lengths = header_values(self._scope["headers"], b"content-length")
        if any(length.isdigit() and len(length) < 20 and int(length) > MOST_BYTES for length in lengths):
            raise _too_large()
        content = bytearray()
        try:
            async with asyncio.timeout(SECONDS):
                while not self._ended:
                    content += await self._next()
                    if len(content) > MOST_BYTES:
                        raise _too_large()
        except TimeoutError:
            raise BodyRefused(408, f"The body did not arrive within {SECONDS:.0f} seconds.") from None
        return bytes(content)

    async def drain(self) -> None:
        """Take in, for a moment, what is not wanted: a sender who is cut off while he sends never sees the answer."""
        taken = 0
        with contextlib.suppress(TimeoutError, Gone):
            async with asyncio.timeout(DRAIN_SECONDS):
                while not self._ended and taken <= MOST_BYTES:
                    taken += len(await self._next())

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._ended = True
            raise Gone
        # After its end there is nothing to wait for but the sender's leaving.
        self._ended = not message.get("more_body", False)
        piece: bytes = message.get("body", b"")
        return piece


def _too_large() -> BodyRefused:
    return BodyRefused(413, f"The body is larger than {MOST_BYTES} bytes.")
