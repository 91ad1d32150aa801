"""Reads the body of a request, with limits on size and time."""

import asyncio
import contextlib

from hubgate.receiver.asgi import Receive, Scope, header_values

# Payloads are at most slightly larger than 256 KiB.
MOST_BYTES = 1024 * 1024
SECONDS = 20.0
DRAIN_SECONDS = 2.0


class BodyRefused(Exception):
    """The body was rejected with this status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


class Gone(Exception):
    """The sender disconnected, so no response can be sent."""


class Body:
    """The body of a request, for one reader."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._scope, self._receive = scope, receive
        self._ended = False

    async def read(self) -> bytes:
        """Read the whole body. Raises BodyRefused or Gone."""
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
        """Read and discard the rest for a moment: a sender that is cut off while sending never sees the response."""
        read = 0
        with contextlib.suppress(TimeoutError, Gone):
            async with asyncio.timeout(DRAIN_SECONDS):
                while not self._ended and read <= MOST_BYTES:
                    read += len(await self._next())

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._ended = True
            raise Gone
        # After the last message, the only one left is the disconnect.
        self._ended = not message.get("more_body", False)
        piece: bytes = message.get("body", b"")
        return piece


def _too_large() -> BodyRefused:
    return BodyRefused(413, f"The body is larger than {MOST_BYTES} bytes.")
