"""Which bytes of which xorbs compose a range of a file. The tables of few xorbs are in memory at a time."""

from collections.abc import AsyncGenerator

from hubgate.server.errors import BadRequest
from hubgate.server.hub.cas.model import StoredXorb
from hubgate.server.hub.cas.tables import TableCache, Xorbs
from hubgate.server.hub.context import Repos
from hubgate.server.hub.xet.plan import Piece, Plan, Selection, plan, select
from hubgate.server.hub.xet.shard import parse_terms

# A client that asks for a whole file of so many parts has to ask for ranges of it.
MAX_TERMS = 50_000


async def plans(
    repos: Repos, xorbs: Xorbs, terms: bytes, start: int, end: int
) -> AsyncGenerator[tuple[StoredXorb, Plan], None]:
    """How the bytes from `start` up to, but not including, `end` of a file are composed: for each term, its xorb and a
    plan for the term.
    """
    selection = select(parse_terms(terms), start, end) if start < end else Selection((), 0, 0)
    if selection is None or selection.length != end - start:
        raise ValueError(f"bytes {start} to {end} of a shorter file")
    tables = TableCache(repos, xorbs)
    skip, length = selection.skip, selection.length
    for term in selection.terms:
        xorb, table = await tables.get(term.xorb)
        # Only the first and the last term may be needed in part.
        part = Selection((term,), skip, min(length, term.size - skip))
        yield xorb, plan(part, {term.xorb: table})
        skip, length = 0, length - part.length


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
