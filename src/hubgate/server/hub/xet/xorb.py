"""Verification of a xorb as it is uploaded: chunk by chunk, with bounded memory.

Specification: "Xorb: xorb format", "Hashing: xorb hashes". A footer (`XorbObjectInfo` of the reference implementation)
may follow the chunks. The hub computes everything that a footer says, so it is only checked for its length and is not
part of what should be stored: store the first `stored_size` bytes.
"""

from collections.abc import Iterable

from hubgate.server.hub.xet.chunk_format import CHUNK_HEADER_SIZE, ChunkDecoder
from hubgate.server.hub.xet.hashes import chunk_hash, hash_text
from hubgate.server.hub.xet.invalid import InvalidXet
from hubgate.server.hub.xet.xorb_table import MAX_CHUNKS, XorbTable

# 64 MiB of incompressible content, and a header for each chunk. Clients count the content or the stored bytes.
MAX_STORED_SIZE = 64 * 1024 * 1024 + MAX_CHUNKS * CHUNK_HEADER_SIZE
# The fixed fields, a hash and two offsets for each chunk, and the length of all these in the last 4 bytes.
MAX_FOOTER_SIZE = 96 + MAX_CHUNKS * 40
MAX_UPLOAD_SIZE = MAX_STORED_SIZE + MAX_FOOTER_SIZE
_LENGTH_SIZE = 4


class XorbVerifier:
    """Reads a xorb in parts of any size. Hashing and decompression take time: call it in a thread."""

    def __init__(self) -> None:
        self._decoder = ChunkDecoder()
        self._rows: list[tuple[bytes, int, int]] = []
        self._stored_size = 0
        self._footer_size = 0
        self._footer_end = b""

    def feed(self, part: bytes | memoryview) -> None:
        """Read the next part. Raises `InvalidXet` as soon as the xorb cannot be valid any more."""
        if self._decoder.footer is not None:
            self._feed_footer(part)
            return
        for chunk in self._decoder.feed(part):
            self._stored_size += chunk.length
            if len(self._rows) == MAX_CHUNKS:
                raise InvalidXet(f"The xorb has more than {MAX_CHUNKS} chunks.")
            if self._stored_size > MAX_STORED_SIZE:
                raise InvalidXet(f"The xorb has more than {MAX_STORED_SIZE} bytes.")
            self._rows.append((chunk_hash(chunk.content), chunk.length, len(chunk.content)))
        if self._decoder.footer is not None:
            self._feed_footer(self._decoder.footer)

    def finish(self, expected: bytes) -> XorbTable:
        """The table of the xorb, whose hash must be `expected`."""
        self._decoder.finish()
        if self._footer_size and int.from_bytes(self._footer_end, "little") != self._footer_size - _LENGTH_SIZE:
            raise InvalidXet("The footer of the xorb is incomplete.")
        if not self._rows:
            raise InvalidXet("The xorb has no chunks.")
        table = XorbTable(self._rows)
        actual = table.xorb_hash()
        if actual != expected:
            raise InvalidXet(f"The xorb has the hash {hash_text(actual)}, not {hash_text(expected)}.")
        return table

    def _feed_footer(self, part: bytes | memoryview) -> None:
        self._footer_size += len(part)
        if self._footer_size > MAX_FOOTER_SIZE:
            raise InvalidXet(f"The footer of the xorb has more than {MAX_FOOTER_SIZE} bytes.")
        self._footer_end = (self._footer_end + bytes(part[-_LENGTH_SIZE:]))[-_LENGTH_SIZE:]


def verify_xorb(parts: Iterable[bytes | memoryview], expected: bytes) -> XorbTable:
    """The table of the xorb in `parts`, whose hash must be `expected`."""
    verifier = XorbVerifier()
    for part in parts:
        verifier.feed(part)
    return verifier.finish(expected)
