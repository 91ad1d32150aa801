"""SQL statements on mailed links."""

from hubgate.server.accounts.links.model import Link, Purpose
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import insert_row

_ADD = insert_row("INSERT INTO links (key, purpose, user_id, email, expires_at)")


async def add(tx: Tx, key: bytes, link: Link, expires_at: int) -> None:
    await tx.exec(
        _ADD,
        {
            "key": key,
            "purpose": link.purpose.value,
            "user_id": link.user_id,
            "email": link.email,
            "expires_at": expires_at,
        },
    )


async def find(db: Database, key: bytes, now: int) -> Link | None:
    sql = "SELECT purpose, user_id, email FROM links WHERE key = :key AND expires_at > :now"
    return _link(await db.one(sql, {"key": key, "now": now}))


async def use(tx: Tx, key: bytes, now: int) -> Link | None:
    """Delete and return a link; None if it was used or has expired. Of several concurrent callers, one gets it."""
    sql = "DELETE FROM links WHERE key = :key AND expires_at > :now RETURNING purpose, user_id, email"
    return _link(await tx.one(sql, {"key": key, "now": now}))


async def remove_by_purpose(tx: Tx, user_id: str, purpose: Purpose) -> None:
    sql = "DELETE FROM links WHERE user_id = :user_id AND purpose = :purpose"
    await tx.exec(sql, {"user_id": user_id, "purpose": purpose.value})


async def remove_all(tx: Tx, user_id: str) -> None:
    await tx.exec("DELETE FROM links WHERE user_id = :user_id", {"user_id": user_id})


async def drop_expired(tx: Tx, now: int, limit: int) -> int:
    return await tx.exec(
        """
        DELETE FROM links WHERE key IN (SELECT key FROM links WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit)
        """,
        {"now": now, "limit": limit},
    )


def _link(row: Row | None) -> Link | None:
    return Link(Purpose(row["purpose"]), row["user_id"], row["email"]) if row else None
