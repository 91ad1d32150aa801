"""The table of a xorb's chunks: hashes, sizes and where their bytes are. Computed by the hub, never read from a footer.

Specification: "Xorb: chunk addressing", "Hashing: term verification hashes". Chunks are numbered from 0 and ranges of
chunks exclude their end. A table is stored as 40 bytes for each chunk: hash, stored length (with the chunk's header)
and size, numbers of 4 bytes, little-endian.
"""

import struct
from array import array
from collections.abc import Iterable, Iterator
from itertools import accumulate

from hubgate.server.hub.xet.chunk_format import CHUNK_HEADER_SIZE, MAX_STORED_CHUNK
from hubgate.server.hub.xet.chunking import MAX_CHUNK
from hubgate.server.hub.xet.hashes import HASH_SIZE, range_hash
from hubgate.server.hub.xet.invalid import InvalidXet
from hubgate.server.hub.xet.tree import xorb_hash

# Named by the specification ("Deduplication: xorbs") and kept to by the public clients.
MAX_CHUNKS = 8 * 1024
_ROW = struct.Struct("<32sII")


class XorbTable:
    """The chunks of one xorb, immutable. About 40 bytes of memory for each chunk."""

    __slots__ = ("_ends", "_hashes", "_stored_ends")

    def __init__(self, rows: Iterable[tuple[bytes, int, int]]) -> None:
        """Each row has the hash of a chunk, its length in the xorb with the header, and its size."""
        listed = list(rows)
        self._hashes = b"".join(value for value, _, _ in listed)
        self._stored_ends = array("I", accumulate((length for _, length, _ in listed), initial=0))
        self._ends = array("I", accumulate((size for _, _, size in listed), initial=0))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, XorbTable) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self._hashes)

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        """The hash and size of each chunk."""
        return ((self.hash_of(index), self.size_of(index)) for index in range(len(self)))

    @property
    def size(self) -> int:
        """The size of all chunks, uncompressed."""
        return self._ends[-1]

    @property
    def stored_size(self) -> int:
        """The length of the xorb without a footer."""
        return self._stored_ends[-1]

    def xorb_hash(self) -> bytes:
        return xorb_hash(self)

    def hash_of(self, index: int) -> bytes:
        return self._hashes[index * HASH_SIZE : (index + 1) * HASH_SIZE]

    def size_of(self, index: int) -> int:
        return self._ends[index + 1] - self._ends[index]

    def start_of(self, index: int) -> int:
        """Where a chunk starts in the content of the xorb, uncompressed."""
        return self._ends[index]

    def includes(self, start: int, end: int) -> bool:
        """Whether this is a range of at least one chunk."""
        return 0 <= start < end <= len(self)

    def size_between(self, start: int, end: int) -> int:
        """The size of a range of chunks, uncompressed."""
        return self._ends[end] - self._ends[start]

    def stored_between(self, start: int, end: int) -> tuple[int, int]:
        """The range of the xorb's bytes that has these chunks; it excludes its end."""
        return self._stored_ends[start], self._stored_ends[end]

    def range_hash(self, start: int, end: int) -> bytes:
        """The verification hash of a range of chunks."""
        return range_hash([self._hashes[start * HASH_SIZE : end * HASH_SIZE]])

    def to_bytes(self) -> bytes:
        return b"".join(
            _ROW.pack(self.hash_of(index), self._stored_ends[index + 1] - self._stored_ends[index], self.size_of(index))
            for index in range(len(self))
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "XorbTable":
        """The table that was stored as `data`."""
        if not data or len(data) % _ROW.size or len(data) > MAX_CHUNKS * _ROW.size:
            raise InvalidXet(f"A table of chunks has {len(data)} bytes.")
        for _, length, size in _ROW.iter_unpack(data):
            if not (CHUNK_HEADER_SIZE < length <= CHUNK_HEADER_SIZE + MAX_STORED_CHUNK and 0 < size <= MAX_CHUNK):
                raise InvalidXet(f"A table of chunks has a chunk of {size} bytes stored in {length}.")
        return cls(_ROW.iter_unpack(data))
