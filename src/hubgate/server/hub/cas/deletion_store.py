"""SQL statements that delete xorbs that nothing refers to."""

from collections.abc import Collection

from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import RowStatement, columns_of

_UNREFERENCED = "NOT EXISTS (SELECT 1 FROM xet_file_xorbs p WHERE p.xorb = xorbs.id)"
# A repo that still receives xorbs may be in the middle of a long upload: the shard that refers to them comes last.
_UNUSED = f"""
    {_UNREFERENCED} AND NOT EXISTS (
        SELECT 1 FROM xorb_uploads u JOIN xorb_uploads o ON o.repo_id = u.repo_id
        WHERE u.xorb = xorbs.id AND o.uploaded_at >= :before
    )
"""


async def newly_unused(tx: Tx, limit: int) -> list[str]:
    """Xorbs without a mark that no file refers to."""
    sql = f"SELECT id FROM xorbs WHERE unused_at IS NULL AND {_UNREFERENCED} LIMIT :limit"
    rows = await tx.all(sql, {"limit": limit})
    return [row["id"] for row in rows]


async def mark(tx: Tx, xorb_ids: Collection[str], now: int) -> None:
    """Mark xorbs that were found to be unused. Whether they are is checked again before they are deleted."""
    await tx.exec_many(
        "UPDATE xorbs SET unused_at = :now WHERE id = :id AND unused_at IS NULL",
        [{"id": xorb_id, "now": now} for xorb_id in xorb_ids],
    )


async def unmark(tx: Tx) -> None:
    """Remove the mark of xorbs that files refer to again."""
    await tx.exec(f"UPDATE xorbs SET unused_at = NULL WHERE unused_at IS NOT NULL AND NOT {_UNREFERENCED}")


async def due(tx: Tx, before: int, limit: int) -> list[str]:
    """Xorbs that were marked before a time, and that no upload since then may need."""
    rows = await tx.all(
        f"SELECT id FROM xorbs WHERE unused_at < :before AND {_UNUSED} ORDER BY id LIMIT :limit",
        {"before": before, "limit": limit},
    )
    return [row["id"] for row in rows]


async def delete(tx: Tx, xorb_id: str, before: int) -> bool:
    """Delete a xorb that is still unused; whether it was.

    The row is locked first. A shard or an upload that needs the xorb locks the same row: it is either committed, and
    the second statement, which begins after that, sees it, or it waits and then finds that the xorb is gone.
    """
    locked = await tx.one("SELECT id FROM xorbs WHERE id = :id /*pg FOR UPDATE */", {"id": xorb_id})
    if locked is None:
        return False
    sql = f"DELETE FROM xorbs WHERE id = :id AND unused_at < :before AND {_UNUSED} RETURNING id"
    return await tx.one(sql, {"id": xorb_id, "before": before}) is not None


async def forget_old_uploads(tx: Tx, before: int) -> None:
    """Delete records of uploads to which files refer, unless their repo still receives others: from now on the files
    decide who may use the xorb.
    """
    await tx.exec(
        """
        DELETE FROM xorb_uploads WHERE uploaded_at < :before
        AND EXISTS (SELECT 1 FROM xet_file_xorbs p WHERE p.xorb = xorb_uploads.xorb)
        AND NOT EXISTS (
            SELECT 1 FROM xorb_uploads o WHERE o.repo_id = xorb_uploads.repo_id AND o.uploaded_at >= :before
        )
        """,
        {"before": before},
    )


async def stored_among(tx: Tx, xorb_ids: Collection[str]) -> set[str]:
    """Those xorbs that are stored."""
    rows = await tx.each(_STORED, [{"id": xorb_id} for xorb_id in xorb_ids])
    return {row["id"] for row in rows}


_STORED = RowStatement("SELECT x.id FROM /*rows*/ xorbs x WHERE x.id = :id", columns_of(text="id"))
