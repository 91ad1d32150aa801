"""Reads the audit log: newest first, in pages or as an export, and in chain order for readers who follow it."""

from collections.abc import AsyncGenerator

from msgspec import Struct

from hubgate.server.audit import store
from hubgate.server.audit.filters import Filter
from hubgate.server.audit.model import Batch, ListedEntry
from hubgate.server.storage.database import Database, Tx

MAX_EXPORTED = 100_000
EXPORTED_AT_ONCE = 500
MAX_COUNTED = 10_000

ListPosition = tuple[int, str]
"""Time and id of an entry: its position in a list that is sorted newest first."""

LIST_START: ListPosition = (2**63 - 1, "")
"""The position before the newest entry."""

CHAIN_START = (0, 0)
"""The position before the first entry of the chain."""


async def older(db: Database, org_id: str, entry_filter: Filter, before: ListPosition, limit: int) -> list[ListedEntry]:
    """The `limit` entries that directly precede `before` in time, newest first."""
    return await db.read_long(lambda tx: store.older(tx, org_id, entry_filter, before, limit))


async def newer(db: Database, org_id: str, entry_filter: Filter, after: ListPosition, limit: int) -> list[ListedEntry]:
    """The `limit` entries that directly follow `after` in time, newest first."""
    found = await db.read_long(lambda tx: store.newer(tx, org_id, entry_filter, after, limit))
    return found[::-1]


async def count(db: Database, org_id: str, entry_filter: Filter) -> int:
    """The number of matching entries; MAX_COUNTED + 1 means more than MAX_COUNTED."""
    return await db.read_long(lambda tx: store.count(tx, org_id, entry_filter, MAX_COUNTED + 1))


async def export(db: Database, org_id: str, entry_filter: Filter) -> AsyncGenerator[list[ListedEntry], None]:
    """Up to MAX_EXPORTED entries, newest first, in parts, so that they are never in memory together."""
    before, left = LIST_START, MAX_EXPORTED
    while left > 0:
        part = await older(db, org_id, entry_filter, before, min(left, EXPORTED_AT_ONCE))
        if not part:
            return
        yield part
        left -= len(part)
        before = list_position(part[-1])


def list_position(listed: ListedEntry) -> ListPosition:
    return listed.entry.created_at, listed.entry.id


class ChainPage(Struct, frozen=True):
    """Sealed entries in chain order, and the position to continue from."""

    entries: list[ListedEntry]
    end: tuple[int, int]


async def follow(db: Database, org_id: str, entry_filter: Filter, after: tuple[int, int], limit: int) -> ChainPage:
    """Sealed entries after a position. Positions are assigned on sealing, so no entry ever appears before `after`."""

    async def unit(tx: Tx) -> ChainPage:
        found = await store.in_chain_order(tx, org_id, entry_filter, after, limit)
        if len(found) < limit and entry_filter.terms:
            # The remaining entries do not match: the next call can skip them.
            return ChainPage(found, max(after, await store.chain_end(tx, org_id) or CHAIN_START))
        return ChainPage(found, _chain_position(found[-1]) if found else after)

    return await db.read_long(unit)


def _chain_position(listed: ListedEntry) -> tuple[int, int]:
    return listed.entry.batch or 0, listed.entry.position or 0


async def batches(db: Database, org_id: str, after: int, limit: int) -> list[tuple[Batch, list[str]]]:
    """The batches of the chain, each with the ids of its entries."""

    async def unit(tx: Tx) -> list[tuple[Batch, list[str]]]:
        found = await store.batches(tx, org_id, after, limit)
        ids: dict[int, list[str]] = {batch.seq: [] for batch in found}
        if found:
            for seq, entry_id in await store.ids_in_batches(tx, org_id, found[0].seq, found[-1].seq):
                ids.setdefault(seq, []).append(entry_id)
        return [(batch, ids[batch.seq]) for batch in found]

    return await db.read_long(unit)
