"""Parsing and checking of uploaded shards, and answers to chunk look-ups."""

import hashlib
import struct
import tracemalloc
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.xet_samples import CONTENTS, LZ4_XORB, SHARD, XORB_HASH, decoded, file_of, xorb_of

from hubgate.server.hub.xet.file_check import check_file
from hubgate.server.hub.xet.hashes import ZERO_HASH, chunk_hash, hash_text, keyed_hash, parse_hash
from hubgate.server.hub.xet.invalid import InvalidXet
from hubgate.server.hub.xet.shard import Shard, parse_terms, parse_upload
from hubgate.server.hub.xet.shard_format import BOOKEND, ENTRY, HEADER, MAX_SHARD_SIZE, TAG
from hubgate.server.hub.xet.shard_writer import NewFile, lookup_answer, term_entries, upload_shard
from hubgate.server.hub.xet.xorb import verify_xorb
from hubgate.server.hub.xet.xorb_table import XorbTable

SHA_OF_NOTHING = hashlib.sha256(b"").hexdigest()
XORB, _, TABLE = xorb_of([b"first", b"second", b"third", b"fourth"])
OTHER, _, OTHER_TABLE = xorb_of([b"elsewhere", b"first"])
TABLES = {XORB: TABLE, OTHER: OTHER_TABLE}
FILE = file_of([(XORB, TABLE, 1, 3), (OTHER, OTHER_TABLE, 0, 2), (XORB, TABLE, 0, 4)])
UPLOAD = upload_shard([FILE], [(XORB, TABLE), (OTHER, OTHER_TABLE)])


def real_shard(footer: bool) -> bytes:
    """The shard of the real upload, with its footer or as the client sends it."""
    data = decoded(SHARD)
    offset = len(data) - 200
    return data if footer else data[:40] + bytes(8) + data[48:offset]


@pytest.mark.parametrize("footer", [True, False])
def test_a_real_shard_is_read(footer: bool) -> None:
    shard = parse_upload(real_shard(footer))
    table = verify_xorb([decoded(LZ4_XORB)], parse_hash(XORB_HASH))
    checked = [check_file(file, {parse_hash(XORB_HASH): table}.get) for file in shard.files()]
    expected = {(hash_, hashlib.sha256(content).hexdigest(), len(content)) for content, hash_ in CONTENTS}
    assert {(hash_text(file.hash), file.sha256, file.size) for file in checked} == {
        *expected,
        (hash_text(ZERO_HASH), SHA_OF_NOTHING, 0),
    }
    [xorb] = shard.xorbs()
    assert hash_text(xorb.hash) == XORB_HASH
    assert [(chunk.hash, chunk.size) for chunk in xorb.chunks()] == list(table)
    assert [chunk.is_listed_for_lookup for chunk in xorb.chunks()] == [True] * 3
    assert (shard.footer is not None) == footer


def test_our_own_shards_are_equal_to_real_ones() -> None:
    table = verify_xorb([decoded(LZ4_XORB)], parse_hash(XORB_HASH))
    real = parse_upload(real_shard(footer=False))
    files = [NewFile(file.hash, list(file.terms()), list(file.range_hashes()), file.sha256) for file in real.files()]
    [xorb] = real.xorbs()
    written = upload_shard(files, [(xorb.hash, table)])
    # This client claims a stored size of 0, and marks the first chunk of each file.
    described = ENTRY.pack(xorb.hash, 0, 3, xorb.size, 0) + b"".join(
        ENTRY.pack(chunk.hash, chunk.start, chunk.size, chunk.flags, 0) for chunk in xorb.chunks()
    )
    start = written.index(BOOKEND) + len(BOOKEND)
    assert written[:start] + described + BOOKEND == real_shard(footer=False)


@pytest.mark.parametrize("footer", [True, False])
def test_a_shard_truncated_anywhere_is_rejected(footer: bool) -> None:
    data = real_shard(footer)
    for length in range(len(data)):
        with pytest.raises(InvalidXet):
            parse_upload(data[:length])


@pytest.mark.parametrize("footer", [True, False])
def test_bytes_after_the_end_are_rejected(footer: bool) -> None:
    with pytest.raises(InvalidXet, match=r"after its records|wrong offsets|has version"):
        parse_upload(real_shard(footer) + bytes(1))


def test_a_changed_byte_is_rejected_or_reserved() -> None:
    """Bytes that a reader ignores: reserved ones, and the claimed stored size of each xorb."""
    ignored = 0
    for position in range(len(UPLOAD)):
        changed = UPLOAD[:position] + bytes([UPLOAD[position] ^ 0x11]) + UPLOAD[position + 1 :]
        try:
            checked = [check_file(file, TABLES.get) for file in parse_upload(changed).files()]
        except InvalidXet:
            continue
        assert [(file.hash, file.size) for file in checked] == [(FILE.hash, TABLE.size + OTHER_TABLE.size + 11)]
        ignored += 1
    assert ignored < len(UPLOAD) / 3


def patched(offset: int, layout: str, value: int) -> bytes:
    changed = bytearray(UPLOAD)
    struct.pack_into(layout, changed, offset, value)
    return bytes(changed)


# Where records of the upload start: the file, its three terms, and the first xorb.
FILE_AT = HEADER.size
TERM_AT = FILE_AT + 48
XORB_AT = UPLOAD.index(BOOKEND) + len(BOOKEND)
CHUNK_AT = XORB_AT + 48


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "has 0 bytes"),
        (bytes(MAX_SHARD_SIZE + 1), "has 67108865 bytes"),
        (bytes(48), "not a shard"),
        (patched(32, "<Q", 3), "version 3"),
        (patched(40, "<Q", 200), "wrong size"),
        (patched(40, "<Q", 2**64 - 1), "wrong size"),
        (patched(40, "<Q", 1), "wrong size"),
        (patched(FILE_AT + 32, "<I", 0xE0000000), "unknown flags: 0xe0000000"),
        (patched(FILE_AT + 36, "<I", 2**32 - 1), "middle of its records"),
        (patched(FILE_AT + 36, "<I", 2**31), "middle of its records"),
        (patched(FILE_AT + 36, "<I", 0), "has 0 terms"),
        (patched(TERM_AT + 36, "<I", 2**32 - 1), "has 4294967295 bytes in the chunks 1 to 3"),
        (patched(TERM_AT + 36, "<I", 1), "has 1 bytes in the chunks 1 to 3"),
        (patched(TERM_AT + 40, "<I", 3), "the chunks 3 to 3"),
        (patched(TERM_AT + 40, "<I", 2**32 - 1), "the chunks 4294967295 to 3"),
        (patched(TERM_AT + 44, "<I", 8193), "the chunks 1 to 8193"),
        (patched(XORB_AT + 36, "<I", 0), "has 0 chunks"),
        (patched(XORB_AT + 36, "<I", 8193), "has 8193 chunks"),
        (patched(XORB_AT + 36, "<I", 2**32 - 1), "has 4294967295 chunks"),
        (patched(XORB_AT + 40, "<I", 4), "have 22 bytes, not 4"),
        (patched(CHUNK_AT + 32, "<I", 1), "overlap, or some are missing"),
        (patched(CHUNK_AT + 36, "<I", 4), "overlap, or some are missing"),
        (patched(CHUNK_AT + 36, "<I", 0), "chunk of 0 bytes"),
        (patched(CHUNK_AT + 36, "<I", 2**17 + 1), "chunk of 131073 bytes"),
        (patched(CHUNK_AT, "<I", 7), "do not have this hash"),
        (upload_shard([NewFile(ZERO_HASH, FILE.terms)], []), "has 3 terms"),
        (upload_shard([FILE, msgspec.structs.replace(FILE, range_hashes=None)], []), "Only some files"),
        (HEADER.pack(TAG, 2, 0) + BOOKEND, "middle of its records"),
        (HEADER.pack(TAG, 2, 0) + BOOKEND + BOOKEND[:-1], "middle of its records"),
        (HEADER.pack(TAG, 2, 0) + BOOKEND * 3, "48 bytes after its records"),
    ],
)
def test_malformed_shards_are_rejected(data: bytes, message: str) -> None:
    with pytest.raises(InvalidXet, match=message):
        parse_upload(data)


@pytest.mark.parametrize(
    ("offset", "value"), [(0, 2), (8, 0), (16, 0), (192, 0)], ids=["version", "files", "xorbs", "footer"]
)
def test_wrong_footers_are_rejected(offset: int, value: int) -> None:
    data = bytearray(real_shard(footer=True))
    struct.pack_into("<Q", data, len(data) - 200 + offset, value)
    with pytest.raises(InvalidXet, match="footer of the shard"):
        parse_upload(bytes(data))


def test_a_shard_without_files_or_xorbs_is_valid() -> None:
    shard = parse_upload(upload_shard([], []))
    assert (list(shard.files()), list(shard.xorbs())) == ([], [])


def changed(**values: object) -> NewFile:
    return msgspec.structs.replace(FILE, **values)


def with_term(**values: object) -> NewFile:
    return changed(terms=[msgspec.structs.replace(FILE.terms[0], **values), *FILE.terms[1:]])


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (changed(sha256=None), "has no SHA-256"),
        (changed(range_hashes=None), "has no verification hashes"),
        (changed(hash=chunk_hash(b"")), "are of a file with the hash"),
        (changed(range_hashes=[FILE.range_hashes[0]] * 3 if FILE.range_hashes else None), "verification hash"),
        (with_term(xorb=chunk_hash(b"private")), "was not uploaded to this repo"),
        (with_term(end=5), "does not have the chunks 1 to 5"),
        (with_term(size=12), "has 11 bytes, not 12"),
        (with_term(start=2, size=5), "verification hash"),
        (changed(terms=FILE.terms[:2], range_hashes=(FILE.range_hashes or ())[:2]), "are of a file with the hash"),
        (changed(terms=FILE.terms[::-1], range_hashes=(FILE.range_hashes or ())[::-1]), "are of a file with the hash"),
    ],
)
def test_files_that_disagree_with_their_xorbs_are_rejected(file: NewFile, message: str) -> None:
    [parsed] = parse_upload(upload_shard([file], [])).files()
    with pytest.raises(InvalidXet, match=message):
        check_file(parsed, TABLES.get)


def test_a_million_records_need_little_memory() -> None:
    """Files of one term, as many as fit: they are checked and read without an object for each being stored."""
    one = upload_shard([file_of([(XORB, TABLE, 0, 1)])], [])[HEADER.size : -2 * len(BOOKEND)]
    data = HEADER.pack(TAG, 2, 0) + one * 20_000 + BOOKEND * 2
    tracemalloc.start()
    try:
        assert sum(1 for _ in Shard(data).files()) == 20_000
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_terms_are_stored_as_they_are() -> None:
    assert list(parse_terms(term_entries(FILE.terms))) == FILE.terms
    [file] = parse_upload(UPLOAD).files()
    assert check_file(file, TABLES.get).terms == term_entries(FILE.terms)


KEY = bytes(range(32))


def test_a_lookup_answer_names_xorbs_by_keyed_chunks() -> None:
    answer = lookup_answer([(XORB, TABLE), (OTHER, OTHER_TABLE)], KEY, 1_700_000_000, 1_700_086_400)
    shard = Shard(answer)
    assert list(shard.files()) == []
    assert shard.footer is not None
    assert (shard.footer.key, shard.footer.created_at, shard.footer.expires_at) == (KEY, 1_700_000_000, 1_700_086_400)
    assert [xorb.hash for xorb in shard.xorbs()] == [XORB, OTHER]
    for xorb in shard.xorbs():
        table = TABLES[xorb.hash]
        assert [(chunk.hash, chunk.start, chunk.size) for chunk in xorb.chunks()] == [
            (keyed_hash(value, KEY), table.start_of(index), size) for index, (value, size) in enumerate(table)
        ]
        assert (xorb.size, xorb.stored_size) == (table.size, table.stored_size)
    # The client finds the end of the xorbs by the offset of the first look-up table.
    assert answer[-200:][24:32] == (len(answer) - 200).to_bytes(8, "little")
    assert not any(value in answer for table in TABLES.values() for value, _ in table)


def test_a_lookup_answer_is_not_an_upload() -> None:
    with pytest.raises(InvalidXet, match="do not have this hash"):
        parse_upload(lookup_answer([(XORB, TABLE)], KEY, 0, 0))


def test_a_lookup_answer_needs_a_key() -> None:
    with pytest.raises(ValueError, match="readable"):
        lookup_answer([(XORB, TABLE)], ZERO_HASH, 0, 0)


CONTENT = st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=8)


@settings(max_examples=60)
@given(st.lists(CONTENT, min_size=1, max_size=4), st.data())
def test_what_is_written_is_read(contents: list[list[bytes]], draw: st.DataObject) -> None:
    xorbs: list[tuple[bytes, XorbTable]] = [(value, table) for value, _, table in map(xorb_of, contents)]
    files = []
    for _ in range(draw.draw(st.integers(0, 3))):
        ranges = []
        for value, table in draw.draw(st.lists(st.sampled_from(xorbs), min_size=1, max_size=4)):
            start = draw.draw(st.integers(0, len(table) - 1))
            ranges.append((value, table, start, draw.draw(st.integers(start + 1, len(table)))))
        files.append(file_of(ranges))
    shard = parse_upload(upload_shard(files, xorbs))
    find: Callable[[bytes], XorbTable | None] = dict(xorbs).get
    assert [(check_file(file, find).hash, file.sha256, list(file.terms())) for file in shard.files()] == [
        (file.hash, file.sha256, file.terms) for file in files
    ]
    assert [(xorb.hash, xorb.size, len(xorb)) for xorb in shard.xorbs()] == [
        (value, table.size, len(table)) for value, table in xorbs
    ]


@settings(max_examples=300)
@given(st.binary(max_size=500))
def test_any_other_bytes_are_rejected(data: bytes) -> None:
    for given_data in (data, HEADER.pack(TAG, 2, 0) + data, HEADER.pack(TAG, 2, 200) + data):
        with pytest.raises(InvalidXet):
            parse_upload(given_data)
