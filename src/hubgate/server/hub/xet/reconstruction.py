"""Answers to a request for a file's reconstruction, versions 1 and 2, as JSON structures.

Specification: "Download protocol: QueryReconstructionResponse", "CAS API: 1. and 10. get file reconstruction, 6. batch
file reconstruction". Ranges of chunks exclude their end; ranges of bytes include it, as in the Range header.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from hubgate.server.hub.xet.hashes import hash_text
from hubgate.server.hub.xet.plan import FetchRange, Plan

# A signed link lists its ranges, and URLs are limited to about 8 KiB.
MAX_RANGES_PER_LINK = 256

# Signs a link to these ranges of the xorb with this hash.
Link = Callable[[bytes, Sequence[FetchRange]], str]


class ChunkRange(Struct, frozen=True):
    """Numbers of chunks; the end is excluded."""

    start: int
    end: int


class ByteRange(Struct, frozen=True):
    """Bytes of a stored xorb; the end is included."""

    start: int
    end: int


class ReconstructionTerm(Struct, frozen=True):
    hash: str
    unpacked_length: int
    range: ChunkRange


class FetchInfo(Struct, frozen=True):
    """Version 1: a link to one range of a xorb."""

    range: ChunkRange
    url: str
    url_range: ByteRange


class ReconstructionV1(Struct, frozen=True):
    offset_into_first_range: int
    terms: list[ReconstructionTerm]
    fetch_info: dict[str, list[FetchInfo]]


class RangeDescriptor(Struct, frozen=True):
    chunks: ChunkRange
    bytes: ByteRange


class MultiRangeFetch(Struct, frozen=True):
    """Version 2: a link to several ranges of a xorb, in ascending order."""

    url: str
    ranges: list[RangeDescriptor]


class ReconstructionV2(Struct, frozen=True):
    offset_into_first_range: int
    terms: list[ReconstructionTerm]
    xorbs: dict[str, list[MultiRangeFetch]]


class BatchReconstruction(Struct, frozen=True):
    """Several whole files at once, in the form of version 1."""

    files: dict[str, list[ReconstructionTerm]]
    fetch_info: dict[str, list[FetchInfo]]


def answer_v1(plan: Plan, link: Link) -> ReconstructionV1:
    """Version 1: one link for each range."""
    return ReconstructionV1(plan.skip, terms_of(plan), _fetch_info(plan, link))


def answer_batch(plans: Mapping[bytes, Plan], link: Link) -> BatchReconstruction:
    """Whole files by their hashes. What several files need of a xorb is linked once."""
    together = Plan(tuple(piece for plan in plans.values() for piece in plan.pieces), 0, 0)
    files = {hash_text(value): terms_of(plan) for value, plan in plans.items()}
    return BatchReconstruction(files, _fetch_info(together, link))


def answer_v2(plan: Plan, link: Link, max_ranges: int = MAX_RANGES_PER_LINK) -> ReconstructionV2:
    """Version 2: usually one link for each xorb, with at most `max_ranges` ranges."""
    found = {
        hash_text(xorb): [
            MultiRangeFetch(link(xorb, part), [RangeDescriptor(_chunks(fetch), _bytes(fetch)) for fetch in part])
            for part in _divided(fetches, max_ranges)
        ]
        for xorb, fetches in plan.fetches().items()
    }
    return ReconstructionV2(plan.skip, terms_of(plan), found)


def terms_of(plan: Plan) -> list[ReconstructionTerm]:
    """The terms of an answer, in the order of the file."""
    return [
        ReconstructionTerm(hash_text(term.xorb), term.size, ChunkRange(term.start, term.end))
        for term in (piece.term for piece in plan.pieces)
    ]


def _fetch_info(plan: Plan, link: Link) -> dict[str, list[FetchInfo]]:
    return {
        hash_text(xorb): [FetchInfo(_chunks(fetch), link(xorb, [fetch]), _bytes(fetch)) for fetch in fetches]
        for xorb, fetches in plan.fetches().items()
    }


def _divided(fetches: Sequence[FetchRange], count: int) -> list[Sequence[FetchRange]]:
    return [fetches[start : start + count] for start in range(0, len(fetches), count)]


def _chunks(fetch: FetchRange) -> ChunkRange:
    return ChunkRange(fetch.start, fetch.end)


def _bytes(fetch: FetchRange) -> ByteRange:
    return ByteRange(fetch.stored_start, fetch.stored_end - 1)
