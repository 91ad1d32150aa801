"""Parser of a shard: the files that an upload registers, and the chunks of the xorbs that were sent for them.

Specification: "MDB Shard File Format", sections 1 to 4. The whole structure is checked when a `Shard` is created; files
and xorbs are then read from the same bytes, one at a time, so memory does not grow with their number. `parse_upload`
also checks what a shard says about xorbs against their hashes; `file_check` checks files against stored xorbs.
"""

from collections.abc import Iterator

from msgspec import Struct

from hubgate.server.hub.xet.chunking import MAX_CHUNK
from hubgate.server.hub.xet.hashes import BOOKEND_HASH, ZERO_HASH, hash_text, is_listed_for_lookup
from hubgate.server.hub.xet.invalid import InvalidXet
from hubgate.server.hub.xet.shard_format import (
    ENTRY,
    FOOTER_SIZE,
    HEADER,
    HEADER_VERSION,
    LOOKUP_CHUNK,
    MAX_SHARD_SIZE,
    RECORD_SIZE,
    TAG,
    WITH_METADATA,
    WITH_VERIFICATION,
    Footer,
    parse_footer,
)
from hubgate.server.hub.xet.tree import xorb_hash
from hubgate.server.hub.xet.xorb_table import MAX_CHUNKS


class Term(Struct, frozen=True):
    """A range of chunks of a xorb, `start` to `end` (excluded), which are `size` bytes of a file."""

    xorb: bytes
    start: int
    end: int
    size: int


class ShardFile(Struct, frozen=True):
    """A file that a shard registers. `sha256` is its text form."""

    hash: bytes
    sha256: str | None
    entries: memoryview
    verification: memoryview | None

    def terms(self) -> Iterator[Term]:
        return parse_terms(self.entries)

    def range_hashes(self) -> Iterator[bytes]:
        """The verification hash of each term; empty if the shard has none."""
        return (value for value, *_ in ENTRY.iter_unpack(self.verification or b""))


class ShardChunk(Struct, frozen=True):
    """A chunk of a xorb. `start` is its offset in the content of the xorb, uncompressed."""

    hash: bytes
    start: int
    size: int
    flags: int

    @property
    def is_listed_for_lookup(self) -> bool:
        """Whether clients look this chunk up: by its hash, or as the first of a file."""
        return bool(self.flags & LOOKUP_CHUNK) or is_listed_for_lookup(self.hash)


class ShardXorb(Struct, frozen=True):
    """A xorb that a shard describes. `stored_size` is only claimed; the reference client sends 0."""

    hash: bytes
    size: int
    stored_size: int
    entries: memoryview

    def __len__(self) -> int:
        return len(self.entries) // RECORD_SIZE

    def chunks(self) -> Iterator[ShardChunk]:
        return (
            ShardChunk(value, start, size, flags) for value, start, size, flags, _ in ENTRY.iter_unpack(self.entries)
        )


def parse_terms(entries: bytes | memoryview) -> Iterator[Term]:
    """The terms in the entries of a file, which may be stored as they are."""
    return (Term(xorb, start, end, size) for xorb, _, size, start, end in ENTRY.iter_unpack(entries))


def parse_upload(data: bytes | memoryview) -> "Shard":
    """An uploaded shard. The chunks of each xorb have the xorb's hash; files are checked by `file_check`."""
    shard = Shard(data)
    for xorb in shard.xorbs():
        if xorb_hash((chunk.hash, chunk.size) for chunk in xorb.chunks()) != xorb.hash:
            raise InvalidXet(f"The chunks of the xorb {hash_text(xorb.hash)} do not have this hash.")
    return shard


class Shard:
    """A shard whose structure is valid: every record is complete, and each xorb's chunks follow one another."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data).toreadonly()
        if not HEADER.size <= len(self._data) <= MAX_SHARD_SIZE:
            raise InvalidXet(f"The shard has {len(self._data)} bytes; shards have {HEADER.size} to {MAX_SHARD_SIZE}.")
        tag, version, self._footer_size = HEADER.unpack_from(self._data)
        if tag != TAG:
            raise InvalidXet("This is not a shard: its first bytes are wrong.")
        if version != HEADER_VERSION:
            raise InvalidXet(f"The shard has version {version}; this hub reads version {HEADER_VERSION}.")
        self._xorbs_offset = self._end_of_files()
        self._end = self._end_of_xorbs()
        self.footer = self._checked_footer()

    def files(self) -> Iterator[ShardFile]:
        offset = HEADER.size
        while (found := self._file_at(offset)) is not None:
            offset, file = found
            yield file

    def xorbs(self) -> Iterator[ShardXorb]:
        offset = self._xorbs_offset
        while (found := self._xorb_at(offset)) is not None:
            offset, xorb = found
            yield xorb

    def _end_of_files(self) -> int:
        offset, verified = HEADER.size, set()
        while (found := self._file_at(offset)) is not None:
            offset, file = found
            _check_terms(file)
            verified.add(file.verification is not None)
        if len(verified) > 1:
            raise InvalidXet("Only some files of the shard have verification hashes.")
        return offset + RECORD_SIZE

    def _end_of_xorbs(self) -> int:
        offset = self._xorbs_offset
        while (found := self._xorb_at(offset)) is not None:
            offset, xorb = found
            _check_chunks(xorb)
        return offset + RECORD_SIZE

    def _file_at(self, offset: int) -> tuple[int, ShardFile] | None:
        """The file at `offset` and the offset of the next, or None at the end of the section."""
        value, flags, count, _, _ = ENTRY.unpack(self._records(offset, 1))
        if value == BOOKEND_HASH:
            return None
        if flags & ~(WITH_VERIFICATION | WITH_METADATA):
            raise InvalidXet(f"A file of the shard has unknown flags: {flags:#x}.")
        offset += RECORD_SIZE
        entries = self._records(offset, count)
        offset += len(entries)
        verification, sha256 = None, None
        if flags & WITH_VERIFICATION:
            verification = self._records(offset, count)
            offset += len(verification)
        if flags & WITH_METADATA:
            sha256 = hash_text(bytes(self._records(offset, 1)[:32]))
            offset += RECORD_SIZE
        return offset, ShardFile(value, sha256, entries, verification)

    def _xorb_at(self, offset: int) -> tuple[int, ShardXorb] | None:
        """The xorb at `offset` and the offset of the next, or None at the end of the section."""
        value, _, count, size, stored_size = ENTRY.unpack(self._records(offset, 1))
        if value == BOOKEND_HASH:
            return None
        if not 0 < count <= MAX_CHUNKS:
            raise InvalidXet(f"A xorb of the shard has {count} chunks; xorbs have 1 to {MAX_CHUNKS}.")
        entries = self._records(offset + RECORD_SIZE, count)
        return offset + RECORD_SIZE + len(entries), ShardXorb(value, size, stored_size, entries)

    def _records(self, offset: int, count: int) -> memoryview:
        end = offset + count * RECORD_SIZE
        if end > len(self._data):
            raise InvalidXet("The shard ends in the middle of its records.")
        return self._data[offset:end]

    def _checked_footer(self) -> Footer | None:
        rest = len(self._data) - self._end
        if self._footer_size == 0:
            if rest:
                raise InvalidXet(f"The shard has {rest} bytes after its records.")
            return None
        if self._footer_size != FOOTER_SIZE or rest < FOOTER_SIZE:
            raise InvalidXet("The footer of the shard has the wrong size.")
        footer = parse_footer(self._data[len(self._data) - FOOTER_SIZE :])
        offsets = (footer.files_offset, footer.xorbs_offset, footer.footer_offset)
        if offsets != (HEADER.size, self._xorbs_offset, len(self._data) - FOOTER_SIZE):
            raise InvalidXet("The footer of the shard has wrong offsets.")
        return footer


def _check_terms(file: ShardFile) -> None:
    # The reference client registers an empty file as one without terms, with a hash of zeros.
    if (len(file.entries) == 0) != (file.hash == ZERO_HASH):
        raise InvalidXet(f"The file {hash_text(file.hash)} has {len(file.entries) // RECORD_SIZE} terms.")
    for term in file.terms():
        count = term.end - term.start
        if not (0 <= term.start < term.end <= MAX_CHUNKS and count <= term.size <= count * MAX_CHUNK):
            raise InvalidXet(
                f"The file {hash_text(file.hash)} has {term.size} bytes in the chunks {term.start} to {term.end} of "
                f"the xorb {hash_text(term.xorb)}."
            )


def _check_chunks(xorb: ShardXorb) -> None:
    position = 0
    for chunk in xorb.chunks():
        if chunk.start != position:
            raise InvalidXet(f"Chunks of the xorb {hash_text(xorb.hash)} overlap, or some are missing.")
        if not 0 < chunk.size <= MAX_CHUNK:
            raise InvalidXet(f"The xorb {hash_text(xorb.hash)} has a chunk of {chunk.size} bytes.")
        position += chunk.size
    if position != xorb.size:
        raise InvalidXet(f"The chunks of the xorb {hash_text(xorb.hash)} have {position} bytes, not {xorb.size}.")
