"""Verification of uploaded xorbs: real ones, and every kind of malformed one."""

import tracemalloc
from collections.abc import Iterator

import lz4.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.xet_samples import BOTH_XORBS, CONTENTS, GROUPED_XORB, LZ4_XORB, XORB_HASH, decoded, xorb_of

from hubgate.server.hub.xet.chunk_format import ChunkDecoder, decode_chunks, encode_chunk
from hubgate.server.hub.xet.chunking import MAX_CHUNK
from hubgate.server.hub.xet.compression import Scheme, group, ungroup
from hubgate.server.hub.xet.hashes import chunk_hash, parse_hash
from hubgate.server.hub.xet.invalid import InvalidXet
from hubgate.server.hub.xet.xorb import MAX_FOOTER_SIZE, XorbVerifier, verify_xorb
from hubgate.server.hub.xet.xorb_table import MAX_CHUNKS, XorbTable

HASH = parse_hash(XORB_HASH)


def header(stored: int, scheme: int, size: int, version: int = 0) -> bytes:
    return bytes([version]) + stored.to_bytes(3, "little") + bytes([scheme]) + size.to_bytes(3, "little")


def rejected(data: bytes) -> str:
    """The message with which a xorb is rejected, regardless of its hash."""
    with pytest.raises(InvalidXet) as caught:
        verify_xorb([data], bytes(32))
    return caught.value.message


@pytest.mark.parametrize("sample", BOTH_XORBS, ids=["lz4", "grouped"])
@pytest.mark.parametrize("part", [1, 7, 100, 10_000])
def test_real_xorbs_are_verified(sample: str, part: int) -> None:
    data = decoded(sample)
    table = verify_xorb([data[start : start + part] for start in range(0, len(data), part)], HASH)
    assert list(table) == [(chunk_hash(content), len(content)) for content, _ in CONTENTS]
    assert data[table.stored_size :].startswith(b"XETBLOB")
    assert list(decode_chunks(data[: table.stored_size])) == [content for content, _ in CONTENTS]
    for index, (content, _) in enumerate(CONTENTS):
        start, end = table.stored_between(index, index + 1)
        assert list(decode_chunks(data[start:end])) == [content]


def test_the_hash_does_not_depend_on_the_compression() -> None:
    tables = [verify_xorb([decoded(sample)], HASH) for sample in BOTH_XORBS]
    assert list(tables[0]) == list(tables[1])
    assert tables[0].stored_size > tables[1].stored_size


def test_the_footer_is_optional_and_never_read() -> None:
    data = decoded(LZ4_XORB)
    table = verify_xorb([data], HASH)
    chunks, footer = data[: table.stored_size], data[table.stored_size :]
    assert verify_xorb([chunks], HASH) == table
    lying = footer[:8] + bytes(len(footer) - 12) + footer[-4:]
    assert verify_xorb([chunks, lying], HASH) == table


@pytest.mark.parametrize("sample", BOTH_XORBS, ids=["lz4", "grouped"])
def test_a_xorb_truncated_anywhere_is_rejected(sample: str) -> None:
    data = decoded(sample)
    whole = verify_xorb([data], HASH).stored_size
    for length in set(range(len(data))) - {whole}:
        with pytest.raises(InvalidXet):
            verify_xorb([data[:length]], HASH)


@pytest.mark.parametrize("sample", BOTH_XORBS, ids=["lz4", "grouped"])
def test_a_changed_byte_before_the_footer_is_rejected_or_harmless(sample: str) -> None:
    data = decoded(sample)
    table = verify_xorb([data], HASH)
    for position in range(table.stored_size):
        changed = data[:position] + bytes([data[position] ^ 0x41]) + data[position + 1 :]
        try:
            found = verify_xorb([changed], HASH)
        except InvalidXet:
            continue
        assert list(found) == list(table)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "has no chunks"),
        (header(1, 0, 1, version=1) + b"a", "version 1"),
        (header(1, 3, 1) + b"a", "unknown compression scheme 3"),
        (header(1, 99, 1) + b"a", "unknown compression scheme 99"),
        (header(0, 0, 0), "has 0 bytes"),
        (header(5, 1, 0) + b"aaaaa", "has 0 bytes"),
        (header(0, 1, 5), "stored in 0 bytes"),
        (header(MAX_CHUNK + 1, 0, MAX_CHUNK + 1), "has 131073 bytes"),
        (header(10, 1, 2**24 - 1), "has 16777215 bytes"),
        (header(2 * MAX_CHUNK + 1, 1, 10), "stored in 262145 bytes"),
        (header(4, 0, 5) + b"abcd", "stored in 4 bytes, but its header says 5"),
        (header(20, 1, 5) + b"abcde" * 4, "not a valid LZ4 frame"),
        (header(5, 0, 5) + b"abcd", "incomplete"),
        (encode_chunk(b"a")[:7], "incomplete"),
        (encode_chunk(b"a") + b"\x00", "incomplete"),
        (encode_chunk(b"a") + b"XETBLOB", "incomplete"),
        (encode_chunk(b"a") + b"XETBLOB\x01" + bytes(92), "footer of the xorb is incomplete"),
        (encode_chunk(b"a") + b"XETBLOB\x01" + bytes(MAX_FOOTER_SIZE), "footer of the xorb has more than"),
        (b"XETBLOB\x01" + bytes(88) + (92).to_bytes(4, "little"), "incomplete|no chunks"),
        (encode_chunk(b"a"), "has the hash"),
    ],
)
def test_malformed_xorbs_are_rejected(data: bytes, message: str) -> None:
    with pytest.raises(InvalidXet, match=message):
        verify_xorb([data], bytes(32))


def compressed(content: bytes, size: int, scheme: Scheme = Scheme.LZ4, **options: int | bool) -> bytes:
    stored = lz4.frame.compress(content, **options)
    return header(len(stored), scheme, size) + stored


@pytest.mark.parametrize("scheme", [Scheme.LZ4, Scheme.GROUPED_LZ4])
def test_chunks_that_are_not_as_large_as_their_header_says_are_rejected(scheme: Scheme) -> None:
    content = bytes(1000)
    assert "larger than the 999 bytes" in rejected(compressed(content, 999, scheme))
    assert "has 1000 bytes, but its header says 1001" in rejected(compressed(content, 1001, scheme))


@pytest.mark.parametrize("store_size", [False, True])
def test_bombs_are_rejected_before_they_are_unpacked(store_size: bool) -> None:
    """40 MB in a frame of 160 KB: nothing of this size is allocated, regardless of the size in the frame."""
    bomb = compressed(bytes(40_000_000), MAX_CHUNK, store_size=store_size, block_size=lz4.frame.BLOCKSIZE_MAX4MB)
    tracemalloc.start()
    try:
        assert "larger than the 131072 bytes" in rejected(bomb)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_an_lz4_chunk_is_exactly_one_frame() -> None:
    frame = lz4.frame.compress(b"content" * 10)
    for stored, message in [
        (frame + b"more", "bytes after its LZ4 frame"),
        (frame + frame, "bytes after its LZ4 frame"),
        (frame[:-4], "middle of its LZ4 frame"),
        (frame[:10], "middle of its LZ4 frame"),
    ]:
        assert message in rejected(header(len(stored), 1, 70) + stored)


def test_frames_of_other_lz4_settings_are_read() -> None:
    content = bytes(range(256)) * 400
    for options in (
        {"block_linked": False},
        {"block_linked": True, "block_size": lz4.frame.BLOCKSIZE_MAX64KB},
        {"content_checksum": True, "block_checksum": True},
        {"compression_level": 9, "store_size": False},
    ):
        assert list(decode_chunks(compressed(content, len(content), **options))) == [content]


def many(count: int, content: bytes = b"x") -> Iterator[bytes]:
    chunk = encode_chunk(content)
    return (chunk for _ in range(count))


def test_a_million_tiny_chunks_are_rejected_early() -> None:
    parts = many(1_000_000)
    with pytest.raises(InvalidXet, match="more than 8192 chunks"):
        verify_xorb(parts, bytes(32))
    assert sum(1 for _ in parts) == 1_000_000 - MAX_CHUNKS - 1
    _, data, table = xorb_of([b"x"] * MAX_CHUNKS)
    assert verify_xorb([data], table.xorb_hash()) == table


def test_a_xorb_of_more_than_64_mib_is_rejected() -> None:
    """Most chunks are one object, so the test needs little memory."""
    chunk = header(MAX_CHUNK, 0, MAX_CHUNK) + bytes(MAX_CHUNK)
    verifier = XorbVerifier()
    for _ in range(512):
        verifier.feed(chunk)
    with pytest.raises(InvalidXet, match="The xorb has more than"):
        verifier.feed(chunk)


def test_a_decoder_stores_one_chunk_at_most() -> None:
    decoder = ChunkDecoder()
    data = b"".join(many(300, b"0123456789" * 1000))
    for start in range(0, len(data), 1000):
        list(decoder.feed(data[start : start + 1000]))
        assert len(decoder._pending) <= 2 * MAX_CHUNK
    decoder.finish()


CHUNKS = st.lists(
    st.one_of(st.binary(min_size=1, max_size=300), st.integers(1, 5000).map(bytes)), min_size=1, max_size=20
)


@settings(max_examples=60)
@given(CHUNKS, st.sampled_from(Scheme), st.integers(1, 400))
def test_what_is_encoded_is_decoded(contents: list[bytes], scheme: Scheme, part: int) -> None:
    value, data, table = xorb_of(contents, scheme)
    assert verify_xorb([data[start : start + part] for start in range(0, len(data), part)], value) == table
    assert list(decode_chunks(data)) == contents
    assert (table.size, table.stored_size, len(table)) == (sum(map(len, contents)), len(data), len(contents))
    assert XorbTable.from_bytes(table.to_bytes()) == table


@settings(max_examples=300)
@given(st.binary(max_size=400))
def test_any_other_bytes_are_rejected(data: bytes) -> None:
    assert rejected(data)


@given(st.binary(max_size=70))
def test_grouping_is_reversible(content: bytes) -> None:
    assert ungroup(group(content)) == content


def test_grouping_is_by_position_in_four() -> None:
    assert group(b"abcdABCDxyz") == b"aAxbBycCzdD"
    assert group(b"ab") == b"ab"


@pytest.mark.parametrize(
    "data", [b"", bytes(39), bytes(40), bytes(32) + b"\x09\x00\x00\x00\x01\x00\x02\x00", bytes(40) * (MAX_CHUNKS + 1)]
)
def test_a_damaged_table_is_rejected(data: bytes) -> None:
    with pytest.raises(InvalidXet, match="A table of chunks has"):
        XorbTable.from_bytes(data)


def test_grouped_sample_is_grouped() -> None:
    assert decoded(GROUPED_XORB)[4] == Scheme.GROUPED_LZ4
