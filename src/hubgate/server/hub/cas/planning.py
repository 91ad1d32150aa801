"""Which bytes of which xorbs compose a range of a file. The tables of few xorbs are in memory at a time."""

import asyncio
from collections.abc import AsyncGenerator

from hubgate.server.errors import BadRequest
from hubgate.server.hub.cas.model import StoredXorb
from hubgate.server.hub.cas.tables import TableCache, Xorbs
from hubgate.server.hub.context import Repos
from hubgate.server.hub.xet.plan import Piece, Plan, Selection, plan, select
from hubgate.server.hub.xet.shard import parse_terms
from hubgate.server.hub.xet.shard_format import ENTRY

# A client that asks for a whole file of so many parts has to ask for ranges of it.
MAX_TERMS = 50_000
# Terms that are read before other requests get a turn.
_TERMS_PER_STEP = 200


async def plans(
    repos: Repos, xorbs: Xorbs, terms: bytes, start: int, end: int
) -> AsyncGenerator[tuple[StoredXorb, Plan], None]:
    """How the bytes from `start` up to, but not including, `end` of a file are composed: for each term, its xorb and a
    plan for the term.
    """
    tables, position = TableCache(repos, xorbs), 0
    for at in range(0, len(terms), _TERMS_PER_STEP * ENTRY.size):
        await asyncio.sleep(0)
        # Not all at once: as objects, the terms of one file can take 40 MB, for as long as a client reads it.
        step = list(parse_terms(terms[at : at + _TERMS_PER_STEP * ENTRY.size]))
        size = sum([term.size for term in step])
        first, last = max(start - position, 0), min(end - position, size)
        position += size
        if first < last and (selection := select(step, first, last)) is not None:
            skip, length = selection.skip, selection.length
            for term in selection.terms:
                xorb, table = await tables.get(term.xorb)
                # Only the first and the last term may be needed in part.
                part = Selection((term,), skip, min(length, term.size - skip))
                yield xorb, plan(part, {term.xorb: table})
                skip, length = 0, length - part.length
        if position >= end:
            return
    if position < end:
        raise ValueError(f"bytes {start} to {end} of a shorter file")


async def plan_range(
    repos: Repos, xorbs: Xorbs, terms: bytes, start: int, end: int
) -> tuple[Plan, dict[bytes, StoredXorb]]:
    """The whole plan of a range, for a client that composes the range itself, and the xorbs in it by hash."""
    pieces, skip, found = list[Piece](), 0, dict[bytes, StoredXorb]()
    async for xorb, part in plans(repos, xorbs, terms, start, end):
        skip = part.skip if not pieces else skip
        pieces += part.pieces
        found[part.pieces[0].term.xorb] = xorb
        if len(pieces) > MAX_TERMS:
            raise BadRequest("This file has too many parts for one answer. Ask for a range of it.")
    return Plan(tuple(pieces), skip, end - start), found
