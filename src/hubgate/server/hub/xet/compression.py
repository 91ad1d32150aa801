"""Compression of one chunk in a xorb: none, LZ4, or LZ4 of bytes grouped by their position in four.

Specification: "Xorb: chunk compression schemes, byte grouping LZ4 compression". LZ4 is the frame format, one frame. The
size in the chunk's header limits what is decompressed, so a frame that would grow beyond it is rejected, not unpacked.
"""

from enum import IntEnum

import lz4.frame

from hubgate.server.hub.xet.invalid import InvalidXet

_GROUPS = 4


class Scheme(IntEnum):
    """How a chunk is compressed. The values are those of the chunk's header."""

    NONE = 0
    LZ4 = 1
    GROUPED_LZ4 = 2


def decompress(scheme: Scheme, stored: bytes, size: int) -> bytes:
    """The content of a chunk, which must have exactly `size` bytes. Allocates no more than that and LZ4's buffers."""
    if scheme is Scheme.NONE:
        content = stored
    else:
        content = _decompress_frame(stored, size)
        if scheme is Scheme.GROUPED_LZ4:
            content = ungroup(content)
    if len(content) != size:
        raise InvalidXet(f"A chunk has {len(content)} bytes, but its header says {size}.")
    return content


def compress(content: bytes, scheme: Scheme) -> tuple[Scheme, bytes]:
    """The stored form of a chunk, and its scheme: `NONE` if compression would not save anything."""
    if scheme is Scheme.NONE:
        return scheme, content
    stored: bytes = lz4.frame.compress(group(content) if scheme is Scheme.GROUPED_LZ4 else content)
    return (scheme, stored) if len(stored) < len(content) else (Scheme.NONE, content)


def group(content: bytes) -> bytes:
    """All first bytes of each four, then all second bytes, and so on."""
    return b"".join(content[number::_GROUPS] for number in range(_GROUPS))


def ungroup(grouped: bytes) -> bytes:
    """The content that `group` was applied to."""
    content, start = bytearray(len(grouped)), 0
    for number in range(_GROUPS):
        # The first groups have one byte more if the size is not a multiple of four.
        end = start + len(range(number, len(grouped), _GROUPS))
        content[number::_GROUPS] = grouped[start:end]
        start = end
    return bytes(content)


def _decompress_frame(stored: bytes, size: int) -> bytes:
    frame = lz4.frame.LZ4FrameDecompressor()
    try:
        # One byte more than allowed shows that there is more, and lets the decoder read the end of the frame.
        content: bytes = frame.decompress(stored, max_length=size + 1)
    except (RuntimeError, EOFError, ValueError) as error:
        raise InvalidXet("A chunk is not a valid LZ4 frame.") from error
    if len(content) > size:
        raise InvalidXet(f"A compressed chunk is larger than the {size} bytes that its header says.")
    if not frame.eof:
        raise InvalidXet("A compressed chunk ends in the middle of its LZ4 frame.")
    if frame.unused_data:
        raise InvalidXet("A compressed chunk has bytes after its LZ4 frame.")
    return content
