"""The fixed parts of a shard: sizes, flags, records and the footer.

Specification: "MDB Shard File Format: constants, 1. header, 4. footer". Every record has 48 bytes; numbers are
little-endian. In the footer, the specification reserves what the reference client reads as the offsets and lengths of
three look-up tables and as totals; a writer fills the offsets in, so that this client finds the end of the xorbs.
"""

import struct

from msgspec import Struct

from hubgate.server.hub.xet.hashes import BOOKEND_HASH, ZERO_HASH
from hubgate.server.hub.xet.invalid import InvalidXet

MAX_SHARD_SIZE = 64 * 1024 * 1024
TAG = b"HFRepoMetaData\x00" + bytes.fromhex("55696745 6a7b8157 83a5bdd9 5ccdd14a a9")
HEADER_VERSION = 2
FOOTER_VERSION = 1
RECORD_SIZE = 48
FOOTER_SIZE = 200
BOOKEND = BOOKEND_HASH + bytes(16)

WITH_VERIFICATION = 1 << 31
WITH_METADATA = 1 << 30
# Set for a chunk that clients look up although its hash alone does not say so: the first of a file.
LOOKUP_CHUNK = 1 << 31

HEADER = struct.Struct("<32sQQ")
# A hash and four numbers: flags, count of entries, and two that depend on the section.
ENTRY = struct.Struct("<32sIIII")
# Version; offsets of files and xorbs; offset and length of three tables; key; created, expires; totals; own offset.
_FOOTER = struct.Struct("<QQQ QQQQQQ 32s QQ 48x QQQ Q")


class Footer(Struct, frozen=True, kw_only=True):
    """The footer of a shard without look-up tables. A key of zeros means that chunk hashes are not keyed."""

    xorbs_offset: int
    footer_offset: int
    files_offset: int = HEADER.size
    key: bytes = ZERO_HASH
    created_at: int = 0
    expires_at: int = 0
    stored_size: int = 0
    size: int = 0

    def to_bytes(self) -> bytes:
        tables = (self.footer_offset, 0) * 3
        return _FOOTER.pack(
            FOOTER_VERSION,
            self.files_offset,
            self.xorbs_offset,
            *tables,
            self.key,
            self.created_at,
            self.expires_at,
            self.stored_size,
            0,
            self.size,
            self.footer_offset,
        )


def parse_footer(data: bytes | memoryview) -> Footer:
    """The footer in the 200 bytes of `data`. Look-up tables before it are not read."""
    version, files, xorbs, *_, key, created_at, expires_at, stored_size, _, size, offset = _FOOTER.unpack(data)
    if version != FOOTER_VERSION:
        raise InvalidXet(f"The footer of the shard has version {version}; this hub reads version {FOOTER_VERSION}.")
    return Footer(
        files_offset=files,
        xorbs_offset=xorbs,
        footer_offset=offset,
        key=key,
        created_at=created_at,
        expires_at=expires_at,
        stored_size=stored_size,
        size=size,
    )
