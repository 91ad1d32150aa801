"""Which bytes of which xorbs compose a range of a file. The tables of few xorbs are in memory at a time."""

from collections.abc import AsyncGenerator

from hubgate.server.errors import BadRequest
from hubgate.server.hub.cas.tables import TableCache
from hubgate.server.hub.context import Repos
from hubgate.server.hub.xet.plan import Plan, Selection, plan, select
from hubgate.server.hub.xet.shard import parse_terms

# A client that asks for a whole file of so many parts has to ask for ranges of it.
MAX_TERMS = 50_000


async def plans(repos: Repos, terms: bytes, start: int, end: int) -> AsyncGenerator[Plan, None]:
    """How the bytes from `start` up to, but not including, `end` of a file are composed, one plan for each term."""
    selection = select(parse_terms(terms), start, end) if start < end else Selection((), 0, 0)
    if selection is None or selection.length != end - start:
        raise ValueError(f"bytes {start} to {end} of a shorter file")
    tables = TableCache(repos)
    skip, length = selection.skip, selection.length
    for term in selection.terms:
        # Only the first and the last term may be needed in part.
        part = Selection((term,), skip, min(length, term.size - skip))
        yield plan(part, {term.xorb: await tables.get(term.xorb)})
        skip, length = 0, length - part.length


async def plan_range(repos: Repos, terms: bytes, start: int, end: int) -> Plan:
    """The whole plan of a range, for a client that composes the range itself."""
    pieces, skip = [], 0
    async for part in plans(repos, terms, start, end):
        skip = part.skip if not pieces else skip
        pieces += part.pieces
        if len(pieces) > MAX_TERMS:
            raise BadRequest("This file has too many parts for one answer. Ask for a range of it.")
    return Plan(tuple(pieces), skip, end - start)
