"""Reconstructions: the bytes of xorbs that restore a range of a file, and the two forms of the answer."""

import random
from collections.abc import Sequence
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.xet_samples import xorb_of

from hubgate.server.hub.xet.chunk_format import ChunkDecoder, decode_chunks, encode_chunk
from hubgate.server.hub.xet.chunking import MAX_CHUNK
from hubgate.server.hub.xet.hashes import hash_text
from hubgate.server.hub.xet.plan import FetchRange, Plan, Window, plan, select
from hubgate.server.hub.xet.reconstruction import answer_batch, answer_v1, answer_v2
from hubgate.server.hub.xet.shard import Term

_SOURCE = random.Random(24)
CHUNKS = [[_SOURCE.randbytes(_SOURCE.randrange(1, 60)) for _ in range(count)] for count in (12, 1, 5)]
XORBS = [xorb_of(chunks) for chunks in CHUNKS]
TABLES = {value: table for value, _, table in XORBS}
STORED = {value: data for value, data, _ in XORBS}


def term(xorb: int, start: int, end: int) -> Term:
    value, _, table = XORBS[xorb]
    return Term(value, start, end, table.size_between(start, end))


def content_of(terms: Sequence[Term]) -> bytes:
    chunks = {value: chunks for (value, _, _), chunks in zip(XORBS, CHUNKS, strict=True)}
    return b"".join(b"".join(chunks[term.xorb][term.start : term.end]) for term in terms)


TERMS = [term(0, 1, 4), term(1, 0, 1), term(0, 3, 12), term(2, 0, 5), term(0, 0, 1)]
CONTENT = content_of(TERMS)


def planned(terms: Sequence[Term], start: int, end: int) -> Plan:
    selection = select(terms, start, end)
    assert selection is not None
    return plan(selection, {value: TABLES[value] for value in selection.xorbs})


def restored(found: Plan) -> bytes:
    """The bytes of a range, as a hub reads them from stored xorbs."""
    window = Window(found.skip, found.length)
    return b"".join(
        window.take(chunk)
        for piece in found.pieces
        for chunk in decode_chunks(STORED[piece.term.xorb][piece.stored_start : piece.stored_end])
    )


def fetched(found: Plan) -> bytes:
    """The bytes of a range, as a client composes them from an answer of version 2 (download protocol, step 3)."""
    answer = answer_v2(found, lambda xorb, _: hash_text(xorb))
    chunks: dict[tuple[str, int], bytes] = {}
    data = {hash_text(value): stored for value, stored in STORED.items()}
    for xorb, links in answer.xorbs.items():
        for link in links:
            for part in link.ranges:
                contents = list(decode_chunks(data[xorb][part.bytes.start : part.bytes.end + 1]))
                assert len(contents) == part.chunks.end - part.chunks.start
                chunks.update({(xorb, part.chunks.start + number): content for number, content in enumerate(contents)})
    whole = b""
    for item in answer.terms:
        content = b"".join(chunks[item.hash, index] for index in range(item.range.start, item.range.end))
        assert len(content) == item.unpacked_length
        whole += content
    return whole[answer.offset_into_first_range :][: found.length]


@pytest.mark.parametrize("length", [1, 2, 17, 59, 60, 300, 10_000])
def test_every_range_is_restored(length: int) -> None:
    for start in range(len(CONTENT)):
        found = planned(TERMS, start, start + length)
        expected = CONTENT[start : start + length]
        assert found.length == len(expected)
        assert restored(found) == expected
        assert fetched(found) == expected


def test_chunks_outside_of_the_range_are_left_out() -> None:
    for start in range(len(CONTENT)):
        for end in (start + 1, start + 40):
            pieces = planned(TERMS, start, end).pieces
            sizes = [TABLES[piece.term.xorb].size_of(piece.term.start) for piece in pieces[:1]]
            found = planned(TERMS, start, end)
            assert found.skip < sizes[0]
            last = pieces[-1].term
            needed = found.skip + found.length
            assert sum(piece.term.size for piece in pieces) - TABLES[last.xorb].size_of(last.end - 1) < needed


TERM = st.sampled_from([(0, 12), (1, 1), (2, 5)]).flatmap(
    lambda xorb: st.integers(0, xorb[1] - 1).flatmap(
        lambda start: st.integers(start + 1, xorb[1]).map(lambda end: term(xorb[0], start, end))
    )
)


@settings(max_examples=150)
@given(st.lists(TERM, min_size=1, max_size=8), st.data())
def test_any_file_is_restored(terms: list[Term], draw: st.DataObject) -> None:
    content = content_of(terms)
    start = draw.draw(st.integers(0, len(content) - 1))
    end = draw.draw(st.integers(start + 1, len(content) + 10))
    found = planned(terms, start, end)
    assert restored(found) == fetched(found) == content[start:end]
    for ranges in found.fetches().values():
        assert all(before.end < after.start for before, after in pairwise(ranges))


def test_a_window_decodes_no_more_than_it_returns() -> None:
    """A part of 20 KB with 4 MB of zeros is decoded in blocks."""
    data = encode_chunk(bytes(MAX_CHUNK)) * 32
    window, chunks = Window(MAX_CHUNK + 5, 3_000_000), ChunkDecoder().feed(data)
    sizes = []
    while block := window.take_some(chunks, 500_000):
        assert not any(block)
        sizes.append(len(block))
    assert max(sizes) < 500_000 + MAX_CHUNK
    assert (sum(sizes), window.missing) == (3_000_000, 0)


def test_a_range_after_the_end_is_not_satisfiable() -> None:
    assert select(TERMS, len(CONTENT), len(CONTENT) + 1) is None
    assert select([], 1, 2) is None


def test_an_empty_file_has_an_empty_reconstruction() -> None:
    found = planned([], 0, 100)
    assert answer_v1(found, lambda *_: "x") == answer_v1(Plan((), 0, 0), lambda *_: "x")
    assert msgspec.to_builtins(answer_v2(found, lambda *_: "x")) == {
        "offset_into_first_range": 0,
        "terms": [],
        "xorbs": {},
    }


@pytest.mark.parametrize(("start", "end"), [(-1, 1), (1, 1), (2, 1)])
def test_ranges_are_checked_by_the_caller(start: int, end: int) -> None:
    with pytest.raises(ValueError, match="bytes"):
        select(TERMS, start, end)


def linked(xorb: bytes, ranges: Sequence[FetchRange]) -> str:
    return f"{hash_text(xorb)[:4]}?" + ",".join(f"{part.stored_start}-{part.stored_end - 1}" for part in ranges)


def test_version_1_has_a_link_for_each_range() -> None:
    terms = [term(0, 1, 3), term(0, 5, 6), term(0, 2, 4), term(1, 0, 1)]
    answer = msgspec.to_builtins(answer_v1(planned(terms, 0, 10_000), linked))
    first, second = hash_text(XORBS[0][0]), hash_text(XORBS[1][0])
    assert answer["offset_into_first_range"] == 0
    assert answer["terms"][1] == {
        "hash": first,
        "unpacked_length": len(CHUNKS[0][5]),
        "range": {"start": 5, "end": 6},
    }
    # Chunks 1 to 3 and 2 to 4 are read at once.
    (start, end), (other_start, other_end) = XORBS[0][2].stored_between(1, 4), XORBS[0][2].stored_between(5, 6)
    assert answer["fetch_info"] == {
        first: [
            {
                "range": {"start": 1, "end": 4},
                "url": f"{first[:4]}?{start}-{end - 1}",
                "url_range": {"start": start, "end": end - 1},
            },
            {
                "range": {"start": 5, "end": 6},
                "url": f"{first[:4]}?{other_start}-{other_end - 1}",
                "url_range": {"start": other_start, "end": other_end - 1},
            },
        ],
        second: [
            {
                "range": {"start": 0, "end": 1},
                "url": f"{second[:4]}?0-{XORBS[1][2].stored_size - 1}",
                "url_range": {"start": 0, "end": XORBS[1][2].stored_size - 1},
            }
        ],
    }


def test_version_2_has_a_link_for_several_ranges() -> None:
    table = XORBS[0][2]
    terms = [term(0, index, index + 1) for index in (8, 0, 4, 2, 6)]
    found = planned(terms, 0, 10_000)
    first = hash_text(XORBS[0][0])
    [link] = answer_v2(found, linked).xorbs[first]
    assert [part.chunks.start for part in link.ranges] == [0, 2, 4, 6, 8]
    assert [(part.bytes.start, part.bytes.end + 1) for part in link.ranges] == [
        table.stored_between(index, index + 1) for index in (0, 2, 4, 6, 8)
    ]
    divided = answer_v2(found, linked, max_ranges=2).xorbs[first]
    assert [len(part.ranges) for part in divided] == [2, 2, 1]
    assert len({part.url for part in divided}) == 3


def test_a_batch_links_what_files_share_once() -> None:
    plans = {
        b"1" * 32: planned([term(0, 0, 3), term(1, 0, 1)], 0, 10_000),
        b"2" * 32: planned([term(0, 2, 6)], 0, 10_000),
        b"3" * 32: planned([], 0, 10_000),
    }
    answer = answer_batch(plans, linked)
    assert {value: len(terms) for value, terms in answer.files.items()} == {"31" * 32: 2, "32" * 32: 1, "33" * 32: 0}
    assert [info.range.end for info in answer.fetch_info[hash_text(XORBS[0][0])]] == [6]
    assert answer.fetch_info.keys() == {hash_text(value) for value, _, _ in XORBS[:2]}
