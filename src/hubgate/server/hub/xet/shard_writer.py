"""Writes shards: answers to chunk look-ups, and uploads as a client would send them.

Specification: "MDB Shard File Format: global deduplication, use of footer fields", "Deduplication: query process". The
answer to a look-up names no files. Its chunk hashes are keyed, so it says something only about chunks that the client
already has; the key should be new for every answer or of short life.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from hubgate.server.hub.xet.hashes import ZERO_HASH, keyed_hash, parse_hash
from hubgate.server.hub.xet.shard import Term
from hubgate.server.hub.xet.shard_format import (
    BOOKEND,
    ENTRY,
    FOOTER_SIZE,
    HEADER,
    HEADER_VERSION,
    TAG,
    WITH_METADATA,
    WITH_VERIFICATION,
    Footer,
)
from hubgate.server.hub.xet.xorb_table import XorbTable


class NewFile(Struct, frozen=True):
    """A file of a shard to be written, with the verification hash of each term."""

    hash: bytes
    terms: Sequence[Term]
    range_hashes: Sequence[bytes] | None = None
    sha256: str | None = None


def lookup_answer(xorbs: Iterable[tuple[bytes, XorbTable]], key: bytes, created_at: int, expires_at: int) -> bytes:
    """The shard that answers a chunk look-up with these xorbs, each by its hash. Times are seconds since 1970."""
    listed = list(xorbs)
    if key == ZERO_HASH:
        raise ValueError("a key of zeros would leave the chunk hashes readable")
    body = BOOKEND + b"".join(_xorb(value, table, key) for value, table in listed) + BOOKEND
    footer = Footer(
        xorbs_offset=HEADER.size + len(BOOKEND),
        footer_offset=HEADER.size + len(body),
        key=key,
        created_at=created_at,
        expires_at=expires_at,
        stored_size=sum(table.stored_size for _, table in listed),
        size=sum(table.size for _, table in listed),
    )
    return HEADER.pack(TAG, HEADER_VERSION, FOOTER_SIZE) + body + footer.to_bytes()


def upload_shard(files: Iterable[NewFile], xorbs: Iterable[tuple[bytes, XorbTable]]) -> bytes:
    """A shard as clients upload it, without a footer."""
    described = b"".join(_xorb(value, table, None) for value, table in xorbs)
    return HEADER.pack(TAG, HEADER_VERSION, 0) + b"".join(map(_file, files)) + BOOKEND + described + BOOKEND


def term_entries(terms: Iterable[Term]) -> bytes:
    """The entries of a file, as `parse_terms` reads them."""
    return b"".join(ENTRY.pack(term.xorb, 0, term.size, term.start, term.end) for term in terms)


def _file(file: NewFile) -> bytes:
    flags, extra = 0, b""
    if file.range_hashes is not None:
        flags |= WITH_VERIFICATION
        extra += b"".join(value + bytes(16) for value in file.range_hashes)
    if file.sha256 is not None:
        flags |= WITH_METADATA
        extra += parse_hash(file.sha256) + bytes(16)
    return ENTRY.pack(file.hash, flags, len(file.terms), 0, 0) + term_entries(file.terms) + extra


def _xorb(value: bytes, table: XorbTable, key: bytes | None) -> bytes:
    entries = [ENTRY.pack(value, 0, len(table), table.size, table.stored_size)]
    for index, (original, size) in enumerate(table):
        shown = original if key is None else keyed_hash(original, key)
        entries.append(ENTRY.pack(shown, table.start_of(index), size, 0, 0))
    return b"".join(entries)
