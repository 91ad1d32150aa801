"""Reading the log: the newest first, in pages or as a whole, and in the order of the chain for those who follow it."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from hubgate.server.audit import store
from hubgate.server.audit.filters import Filter
from hubgate.server.audit.model import Batch, Listed
from hubgate.server.storage.database import Database, Tx

MOST_EXPORTED = 100_000
EXPORTED_AT_ONCE = 500
MOST_COUNTED = 10_000

Place = tuple[int, str]
"""Time and id of an entry: its place among the newest first."""

NOW: Place = (2**63 - 1, "")
START = (0, 0)
"""Before the first entry of the chain."""


async def older(db: Database, org_id: str, only: Filter, before: Place, most: int) -> list[Listed]:
    return await db.read_long(lambda tx: store.older(tx, org_id, only, before, most))


async def newer(db: Database, org_id: str, only: Filter, after: Place, most: int) -> list[Listed]:
    """The newest first: those right before `after` in that order."""
    found = await db.read_long(lambda tx: store.newer(tx, org_id, only, after, most))
    return found[::-1]


async def count(db: Database, org_id: str, only: Filter) -> int:
    """MOST_COUNTED + 1 stands for more."""
    return await db.read_long(lambda tx: store.count(tx, org_id, only, MOST_COUNTED + 1))


async def export(db: Database, org_id: str, only: Filter) -> AsyncGenerator[list[Listed], None]:
    """The newest first, a part at a time: a hundred thousand entries are never in memory together."""
    before, left = NOW, MOST_EXPORTED
    while left > 0:
        part = await older(db, org_id, only, before, min(left, EXPORTED_AT_ONCE))
        if not part:
            return
        yield part
        left -= len(part)
        before = place_of(part[-1])


def place_of(listed: Listed) -> Place:
    return listed.entry.created_at, listed.entry.id


@dataclass(frozen=True)
class Followed:
    """Sealed entries in the order of the chain, and the place from which to ask next."""

    entries: list[Listed]
    end: tuple[int, int]


async def follow(db: Database, org_id: str, only: Filter, after: tuple[int, int], most: int) -> Followed:
    """An entry gets its place when it is sealed, so nothing ever appears before a place that was passed."""

    async def unit(tx: Tx) -> Followed:
        found = await store.in_chain_order(tx, org_id, only, after, most)
        if len(found) < most and only.terms:
            # The rest was looked at and does not match: nobody needs to look at it again.
            return Followed(found, max(after, await store.chain_end(tx, org_id) or START))
        return Followed(found, _sealed_place(found[-1]) if found else after)

    return await db.read_long(unit)


def _sealed_place(listed: Listed) -> tuple[int, int]:
    return listed.entry.batch or 0, listed.entry.position or 0


async def batches(db: Database, org_id: str, after: int, most: int) -> list[tuple[Batch, list[str]]]:
    """The links of the chain, each with the ids of its entries."""

    async def unit(tx: Tx) -> list[tuple[Batch, list[str]]]:
        found = await store.batches(tx, org_id, after, most)
        ids: dict[int, list[str]] = {batch.seq: [] for batch in found}
        if found:
            for seq, entry_id in await store.ids_in_batches(tx, org_id, found[0].seq, found[-1].seq):
                ids.setdefault(seq, []).append(entry_id)
        return [(batch, ids[batch.seq]) for batch in found]

    return await db.read_long(unit)
