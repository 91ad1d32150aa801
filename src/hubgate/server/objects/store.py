"""SQL statements for content that is about to be deleted.

`is_deleting` is 1 while content is being deleted, and 2 if it is marked again because the store refused to delete it.
"""

from collections.abc import Sequence

from msgspec import Struct

from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import RowStatement, columns_of

_KEY = columns_of(text="key")


async def state(db: Database, key: str) -> int | None:
    """1 if the content is being deleted, 0 or 2 if it may be deleted later, None if it is not marked."""
    row = await db.one("SELECT is_deleting FROM object_deletions WHERE key = :key", {"key": key})
    return None if row is None else int(row["is_deleting"])


async def unmark(tx: Tx, key: str) -> bool:
    """Remove the mark; whether the content is not being deleted yet."""
    params = {"key": key}
    await tx.exec("DELETE FROM object_deletions WHERE key = :key AND is_deleting <> 1", params)
    return await tx.one("SELECT key FROM object_deletions WHERE key = :key", params) is None


_MARK = RowStatement(
    """
    INSERT INTO object_deletions (key, kind, marked_at, is_deleting)
    SELECT :key, CAST(:kind AS text), CAST(:now AS bigint), 0 /*pg FROM batch */ WHERE 1 = 1
    ON CONFLICT (key) DO NOTHING
    """,
    _KEY,
)


async def mark(tx: Tx, kind: str, keys: Sequence[str], now: int) -> None:
    await tx.each(_MARK, [{"key": key} for key in keys], {"kind": kind, "now": now})


class Times(Struct, frozen=True):
    """Marks from before `marked` are old enough, and deletions that began before `begun` were interrupted."""

    now: int
    marked: int
    begun: int


_DUE = """
    marked_at <= CASE is_deleting WHEN 1 THEN CAST(:begun AS bigint) ELSE CAST(:marked AS bigint) END
"""


async def due(tx: Tx, kind: str, times: Times, limit: int) -> list[str]:
    """Marked content whose mark is old enough, and content whose deletion was interrupted."""
    rows = await tx.all(
        f"""
        SELECT key FROM object_deletions WHERE kind = :kind AND {_DUE}
        ORDER BY marked_at LIMIT CAST(:limit AS bigint)
        """,
        {"kind": kind, "marked": times.marked, "begun": times.begun, "limit": limit},
    )
    return [row["key"] for row in rows]


_BEGIN = RowStatement(
    f"""
    UPDATE object_deletions SET is_deleting = 1, marked_at = CAST(:now AS bigint) /*pg FROM batch */
    WHERE key = :key AND {_DUE} RETURNING key
    """,
    _KEY,
)


async def begin(tx: Tx, keys: Sequence[str], times: Times) -> list[str]:
    """Begin to delete content; the keys that are still due, which no other process deletes now."""
    shared = {"now": times.now, "marked": times.marked, "begun": times.begun}
    return [row["key"] for row in await tx.each(_BEGIN, [{"key": key} for key in keys], shared)]


# Not if another process has taken over.
_BEGUN_HERE = "WHERE key = :key AND is_deleting = 1 AND marked_at = CAST(:begun AS bigint)"
_FINISH = RowStatement(f"DELETE FROM object_deletions /*pg USING batch */ {_BEGUN_HERE}", _KEY)
_REFUSE = RowStatement(f"UPDATE object_deletions SET is_deleting = 2 /*pg FROM batch */ {_BEGUN_HERE}", _KEY)
_LEAVE = RowStatement(f"UPDATE object_deletions SET marked_at = 0 /*pg FROM batch */ {_BEGUN_HERE}", _KEY)


async def end(tx: Tx, deleted: Sequence[str], refused: Sequence[str], others: Sequence[str], begun: int) -> None:
    """Remove the marks of deleted content, mark again what the store refused to delete, so that uploads of the same
    content are accepted, and leave the other content to the next sweep.
    """
    for statement, keys in ((_FINISH, deleted), (_REFUSE, refused), (_LEAVE, others)):
        await tx.each(statement, [{"key": key} for key in keys], {"begun": begun})


async def refused_count(tx: Tx) -> int:
    """The number of objects that the store refused to delete when this was last tried."""
    row = await tx.one("SELECT COUNT(*) AS found FROM object_deletions WHERE is_deleting = 2")
    return int(row["found"]) if row else 0


_REMOVE = RowStatement("DELETE FROM object_deletions /*pg USING batch */ WHERE key = :key", _KEY)


async def remove(tx: Tx, keys: Sequence[str]) -> None:
    await tx.each(_REMOVE, [{"key": key} for key in keys])
