"""Content-defined chunking: divides a file where its content says so, so that equal content gives equal chunks.

Specification: "Content-Defined Chunking Algorithm". Exact, but in plain Python about 10 MB a second: for tests, and for
content that the hub itself stores as Xet. Clients divide what they upload.
"""

from collections.abc import Iterable, Iterator

from hubgate.server.hub.xet.gear_table import GEAR_TABLE

MIN_CHUNK = 8 * 1024
MAX_CHUNK = 128 * 1024
_BITS_64 = 0xFFFF_FFFF_FFFF_FFFF
# A boundary is where the upper 16 bits of the hash are zero, that is, where the hash is below 2**48.
_BOUNDARY = 1 << 48
# Each byte shifts the hash by one bit, so only the last 64 bytes count, and earlier ones need not be hashed.
_WINDOW = 64


def chunks(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks of a file that is read in parts of any size. At most a part and two chunks are in memory."""
    pending = bytearray()
    for part in parts:
        pending += part
        start = 0
        # With less than a chunk of the maximum size, bytes still to be read could move the boundary.
        while len(pending) - start >= MAX_CHUNK:
            end = _boundary(pending, start)
            yield bytes(pending[start:end])
            start = end
        del pending[:start]
    start = 0
    while start < len(pending):
        end = _boundary(pending, start)
        yield bytes(pending[start:end])
        start = end


def _boundary(content: bytearray, start: int) -> int:
    """The end of the chunk that starts at `start`: its first boundary, its maximum size or the end of the content."""
    end = min(start + MAX_CHUNK, len(content))
    first = start + MIN_CHUNK
    if end <= first:
        return end
    table, value = GEAR_TABLE, 0
    for byte in memoryview(content)[first - _WINDOW : first - 1]:
        value = ((value << 1) + table[byte]) & _BITS_64
    # The first possible boundary is after `first` bytes, so the byte before it is the first to be tested.
    for position, byte in enumerate(memoryview(content)[first - 1 : end], first):
        value = ((value << 1) + table[byte]) & _BITS_64
        if value < _BOUNDARY:
            return position
    return end
