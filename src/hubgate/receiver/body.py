"""Reads the body of a request, with limits on size and time."""

import asyncio
import contextlib

from hubgate.receiver.asgi import Receive, Scope, header_values

# Payloads are at most slightly larger than 256 KiB.
MAX_BYTES = 1024 * 1024
READ_SECONDS = 20.0
DRAIN_SECONDS = 2.0


class BodyRejected(Exception):
    """The body was rejected with this status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


class Disconnected(Exception):
    """The sender disconnected, so no response can be sent."""


class Body:
    """The body of a request, for one reader."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._scope, self._receive = scope, receive
        self._ended = False

    async def read(self) -> bytes:
        """Read the whole body. Raises BodyRejected or Disconnected."""
        lengths = header_values(self._scope["headers"], b"content-length")
        if any(length.isdigit() and len(length) < 20 and int(length) > MAX_BYTES for length in lengths):
            raise _too_large()
        content = bytearray()
        try:
            async with asyncio.timeout(READ_SECONDS):
                while not self._ended:
                    content += await self._next()
                    if len(content) > MAX_BYTES:
                        raise _too_large()
        except TimeoutError:
            raise BodyRejected(408, f"The body was not received within {READ_SECONDS:.0f} seconds.") from None
        return bytes(content)

    async def drain(self) -> None:
        """Read and discard the rest for a moment: a sender that is cut off while sending never sees the response."""
        read = 0
        with contextlib.suppress(TimeoutError, Disconnected):
            async with asyncio.timeout(DRAIN_SECONDS):
                while not self._ended and read <= MAX_BYTES:
                    read += len(await self._next())

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._ended = True
            raise Disconnected
        # The only message after the last part of the body is the disconnect.
        self._ended = not message.get("more_body", False)
        piece: bytes = message.get("body", b"")
        return piece


def _too_large() -> BodyRejected:
    return BodyRejected(413, f"The body is larger than {MAX_BYTES} bytes.")
