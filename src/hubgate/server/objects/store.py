"""SQL statements for content that is about to be deleted."""

from collections.abc import Sequence

from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import RowStatement, columns_of

_KEY = columns_of(text="key")


async def state(db: Database, key: str) -> int | None:
    """1 if the content is being deleted, 0 if it may be deleted later, None if it is not marked."""
    row = await db.one("SELECT is_deleting FROM object_deletions WHERE key = :key", {"key": key})
    return None if row is None else int(row["is_deleting"])


async def unmark(tx: Tx, key: str) -> bool:
    """Remove the mark; whether the content is not being deleted yet."""
    params = {"key": key}
    await tx.exec("DELETE FROM object_deletions WHERE key = :key AND is_deleting = 0", params)
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


async def due(tx: Tx, kind: str, before: int, limit: int) -> list[str]:
    """Marked content whose mark is old enough, and content whose deletion was interrupted."""
    rows = await tx.all(
        """
        SELECT key FROM object_deletions WHERE kind = :kind AND (is_deleting = 1 OR marked_at <= :before)
        ORDER BY marked_at LIMIT CAST(:limit AS bigint)
        """,
        {"kind": kind, "before": before, "limit": limit},
    )
    return [row["key"] for row in rows]


_BEGIN = RowStatement(
    "UPDATE object_deletions SET is_deleting = 1 /*pg FROM batch */ WHERE key = :key RETURNING key", _KEY
)


async def begin(tx: Tx, keys: Sequence[str]) -> list[str]:
    """Begin to delete content; the keys that are still marked."""
    return [row["key"] for row in await tx.each(_BEGIN, [{"key": key} for key in keys])]


_REMOVE = RowStatement("DELETE FROM object_deletions /*pg USING batch */ WHERE key = :key", _KEY)


async def remove(tx: Tx, keys: Sequence[str]) -> None:
    await tx.each(_REMOVE, [{"key": key} for key in keys])
