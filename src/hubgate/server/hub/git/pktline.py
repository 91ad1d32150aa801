"""Packet lines of the git protocol: four hex digits of length, including themselves, then the payload; `0000` is a
flush (gitprotocol-common).
"""

import re
from collections.abc import AsyncIterator, Iterator

from hubgate.server.errors import BadRequest

MAX_LINE_BYTES = 65520
MAX_PAYLOAD_BYTES = MAX_LINE_BYTES - 4
FLUSH = b"0000"

_LENGTH = re.compile(rb"[0-9a-fA-F]{4}\Z")


def line(payload: bytes) -> bytes:
    return b"%04x%s" % (len(payload) + 4, payload)


def with_band(band: int, payload: bytes) -> Iterator[bytes]:
    """Split `payload` into lines on a channel of side-band-64k."""
    for start in range(0, len(payload), MAX_PAYLOAD_BYTES - 1):
        yield line(bytes([band]) + payload[start : start + MAX_PAYLOAD_BYTES - 1])


def split(message: bytes) -> list[tuple[int, bytes]]:
    """The packets of a whole message, each with its length field, which is 0 for a flush and 1 for a delimiter. Empty
    if the message is not in packet lines.
    """
    packets: list[tuple[int, bytes]] = []
    at = 0
    while at < len(message):
        head = message[at : at + 4]
        length = int(head, 16) if _LENGTH.match(head) else -1
        payload = message[at + 4 : at + length]
        if length not in (0, 1) and len(payload) != length - 4:
            return []
        packets.append((length, payload))
        at += max(length, 4)
    return packets


class LineReader:
    """Reads packet lines from the start of a stream; `rest` returns the bytes after them."""

    def __init__(self, parts: AsyncIterator[bytes]) -> None:
        self._parts = parts
        self._buffer = bytearray()

    async def next(self) -> bytes | None:
        """The next payload; None for a flush. Raises BadRequest on an invalid packet line."""
        head = await self._read_exactly(4)
        if not _LENGTH.match(head):
            raise BadRequest("The request is not in packet lines.")
        length = int(head, 16)
        if length == 0:
            return None
        if length < 4 or length > MAX_LINE_BYTES:
            raise BadRequest(f"A packet line must have 4 to {MAX_LINE_BYTES} bytes, not {length}.")
        return await self._read_exactly(length - 4)

    async def is_empty(self) -> bool:
        """Whether the stream is exhausted."""
        while not self._buffer:
            part = await anext(self._parts, None)
            if part is None:
                return True
            self._buffer += part
        return False

    async def rest(self) -> AsyncIterator[bytes]:
        if self._buffer:
            buffered = bytes(self._buffer)
            self._buffer.clear()
            yield buffered
        async for part in self._parts:
            yield part

    async def _read_exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            part = await anext(self._parts, None)
            if part is None:
                raise BadRequest("The request ended in the middle of a packet line.")
            self._buffer += part
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken
