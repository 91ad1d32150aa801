"""Statements on shards, the processes that own them, and wake-ups."""

from collections.abc import Iterable

from hubgate.server.ids import new_id
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.signals import Signal
from hubgate.server.storage.sqltext import Params, RowStatement, insert_row

SHARDS = 256


def shard_of(webhook_id: str) -> int:
    """The shard of a webhook: the last two digits of its id, which are random."""
    return int(webhook_id[-2:], 16)


_ADD_SENDER = insert_row("INSERT INTO senders (id, heartbeat, machine)")


async def add_sender(tx: Tx, sender_id: str, machine: str) -> None:
    await tx.exec(_ADD_SENDER, {"id": sender_id, "heartbeat": 0, "machine": machine})


async def is_alive(tx: Tx, sender_id: str) -> bool:
    """Whether this process may still write. A takeover waits for units that called this; later calls return False."""
    sql = "SELECT 1 FROM senders WHERE id = :id /*pg FOR KEY SHARE */"
    return await tx.one(sql, {"id": sender_id}) is not None


async def beat(tx: Tx, sender_id: str, attempts: int) -> bool:
    """Change the heartbeat, and store the attempts of the last minute; False after a takeover. The heartbeat is a
    counter, so that clocks do not matter.
    """
    sql = "UPDATE senders SET heartbeat = heartbeat + 1, attempts = :attempts WHERE id = :id"
    return await tx.exec(sql, {"id": sender_id, "attempts": attempts}) == 1


async def senders(db: Database) -> dict[str, tuple[int, str]]:
    """Heartbeat and machine of each process, in the order of their ids."""
    rows = await db.few("SELECT id, heartbeat, machine FROM senders ORDER BY id")
    return {row["id"]: (row["heartbeat"], row["machine"]) for row in rows}


async def owners(db: Database) -> list[str | None]:
    """The owner of each shard."""
    return [row["sender_id"] for row in await db.few("SELECT sender_id FROM shards ORDER BY shard")]


_CLAIM = """
    UPDATE shards SET sender_id = :id WHERE shard IN (
        SELECT shard FROM shards WHERE sender_id IS NULL ORDER BY shard LIMIT :count /*pg FOR UPDATE SKIP LOCKED */
    ) RETURNING shard
"""


async def claim(tx: Tx, sender_id: str, count: int) -> set[int]:
    """Become the owner of shards without one."""
    return {row["shard"] for row in await tx.all(_CLAIM, {"id": sender_id, "count": count})}


async def end(tx: Tx, sender_id: str, heartbeat: int | None = None) -> bool:
    """End the ownership of a process that has stopped or died. False if another process has done so, or if the process
    was only late: it has changed its heartbeat.
    """
    sql = "DELETE FROM senders WHERE id = :id AND heartbeat = COALESCE(CAST(:heartbeat AS bigint), heartbeat)"
    if await tx.exec(sql, {"id": sender_id, "heartbeat": heartbeat}) == 0:
        return False
    await tx.exec("UPDATE shards SET sender_id = NULL WHERE sender_id = :id", {"id": sender_id})
    return True


_RELEASE = RowStatement(
    "UPDATE shards SET sender_id = NULL /*pg FROM batch */ WHERE shard = :shard AND sender_id = :id",
    {"shard": "bigint"},
)


async def release(tx: Tx, sender_id: str, shards: Iterable[int]) -> None:
    rows: list[Params] = [{"shard": shard} for shard in shards]
    await tx.each(_RELEASE, rows, {"id": sender_id})


# The owned shards as a string of 256 digits, so that one statement finds the rows of all of them.
_OWNED = "substr(CAST(:owned AS text), CAST(shard + 1 AS integer), 1) = '1'"


def digits(shards: Iterable[int]) -> str:
    owned = set(shards)
    return "".join("1" if shard in owned else "0" for shard in range(SHARDS))


async def has_wakes(db: Database, shards: Iterable[int]) -> bool:
    return await db.one(f"SELECT 1 FROM wakes WHERE {_OWNED} LIMIT 1", {"owned": digits(shards)}) is not None


async def take_wakes(tx: Tx, shards: Iterable[int]) -> set[str]:
    """Delete the wake-ups of these shards, and return the webhooks that must be read again."""
    rows = await tx.all(f"DELETE FROM wakes WHERE {_OWNED} RETURNING webhook_id", {"owned": digits(shards)})
    return {row["webhook_id"] for row in rows}


async def woken(tx: Tx, shards: Iterable[int]) -> set[str]:
    """The webhooks that must be read again, before anything newer of them is sent."""
    rows = await tx.all(f"SELECT DISTINCT webhook_id FROM wakes WHERE {_OWNED}", {"owned": digits(shards)})
    return {row["webhook_id"] for row in rows}


_WAKE = RowStatement(
    "INSERT INTO wakes (id, shard, webhook_id) SELECT :id, :shard, :webhook_id /*pg FROM batch */",
    {"id": "text", "shard": "bigint", "webhook_id": "text"},
)


async def wake(tx: Tx, webhook_ids: Iterable[str], now: int) -> None:
    """Let the owner of each webhook's shard read the webhook again: deliveries were added, or settings changed.

    Every change adds rows, and the owner deletes those that it sees. So a change that is committed later than another
    is never overlooked, as it could be with a cursor over numbers that are drawn before the commit.
    """
    rows: list[Params] = [
        {"id": new_id(now), "shard": shard_of(webhook_id), "webhook_id": webhook_id} for webhook_id in webhook_ids
    ]
    await tx.each(_WAKE, rows)
    tx.signal(Signal.DELIVERIES)
