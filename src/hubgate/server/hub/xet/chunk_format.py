"""One chunk in a xorb: a header of 8 bytes, then the stored bytes. A decoder reads them as they are received.

Specification: "Xorb: chunk format". Header: version (1 byte, 0), stored size (3 bytes), scheme (1 byte) and size (3
bytes), numbers little-endian. All limits are checked in the header, before anything is stored or decompressed.
"""

from collections.abc import Iterator

from msgspec import Struct

from hubgate.server.hub.xet.chunking import MAX_CHUNK
from hubgate.server.hub.xet.compression import Scheme, compress, decompress
from hubgate.server.hub.xet.invalid import InvalidXet

CHUNK_HEADER_SIZE = 8
# A client should store a chunk that LZ4 enlarges as it is, but may not.
MAX_STORED_CHUNK = 2 * MAX_CHUNK
# In the place of a chunk's header, the start of a xorb's footer.
FOOTER_IDENT = b"XETBLOB"
_SCHEMES = {int(scheme): scheme for scheme in Scheme}


class ChunkHeader(Struct, frozen=True):
    scheme: Scheme
    stored_size: int
    size: int


class Chunk(Struct, frozen=True):
    """A decoded chunk. `length` counts its bytes in the xorb, with the header."""

    length: int
    content: bytes


def parse_chunk_header(data: bytes) -> ChunkHeader:
    """The header in the 8 bytes of `data`."""
    version, stored_size, size = data[0], int.from_bytes(data[1:4], "little"), int.from_bytes(data[5:8], "little")
    scheme = _SCHEMES.get(data[4])
    if version != 0:
        raise InvalidXet(f"A chunk has version {version}; this hub reads version 0.")
    if scheme is None:
        raise InvalidXet(f"A chunk has the unknown compression scheme {data[4]}.")
    if not 0 < size <= MAX_CHUNK:
        raise InvalidXet(f"A chunk has {size} bytes; chunks have 1 to {MAX_CHUNK}.")
    if not 0 < stored_size <= MAX_STORED_CHUNK:
        raise InvalidXet(f"A chunk is stored in {stored_size} bytes; chunks are stored in 1 to {MAX_STORED_CHUNK}.")
    if scheme is Scheme.NONE and stored_size != size:
        raise InvalidXet(f"An uncompressed chunk is stored in {stored_size} bytes, but its header says {size}.")
    return ChunkHeader(scheme, stored_size, size)


def encode_chunk(content: bytes, scheme: Scheme = Scheme.LZ4) -> bytes:
    """A chunk as it is stored in a xorb."""
    if not 0 < len(content) <= MAX_CHUNK:
        raise ValueError(f"a chunk of {len(content)} bytes")
    scheme, stored = compress(content, scheme)
    sizes = len(stored).to_bytes(3, "little"), len(content).to_bytes(3, "little")
    return b"\x00" + sizes[0] + bytes([scheme]) + sizes[1] + stored


class ChunkDecoder:
    """Decodes consecutive chunks from parts of any size. Stores at most one chunk between two calls.

    At the footer of a xorb, decoding stops: `footer` then contains the rest of the part and `feed` rejects more.
    """

    def __init__(self) -> None:
        self.footer: bytes | None = None
        self._pending = bytearray()
        self._header: ChunkHeader | None = None

    def feed(self, part: bytes | memoryview) -> Iterator[Chunk]:
        """The chunks that are complete with this part. Iterate to the end before the next call."""
        if self.footer is not None:
            raise ValueError("the chunks have ended")
        view = memoryview(part)
        while self.footer is None:
            wanted = CHUNK_HEADER_SIZE if self._header is None else self._header.stored_size
            missing = wanted - len(self._pending)
            self._pending += view[:missing]
            view = view[missing:]
            if len(self._pending) < wanted:
                return
            data = bytes(self._pending)
            self._pending.clear()
            if self._header is not None:
                header, self._header = self._header, None
                content = decompress(header.scheme, data, header.size)
                yield Chunk(CHUNK_HEADER_SIZE + header.stored_size, content)
            elif data.startswith(FOOTER_IDENT):
                self.footer = data + bytes(view)
            else:
                self._header = parse_chunk_header(data)

    def finish(self) -> None:
        """Check that the last chunk was complete."""
        if self.footer is None and (self._pending or self._header is not None):
            raise InvalidXet("The last chunk is incomplete.")


def decode_chunks(data: bytes | memoryview) -> Iterator[bytes]:
    """The contents of consecutive chunks, complete in `data`."""
    decoder = ChunkDecoder()
    for chunk in decoder.feed(data):
        yield chunk.content
    decoder.finish()
