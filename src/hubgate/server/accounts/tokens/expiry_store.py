"""SQL statements on the expiry of personal tokens."""

from collections.abc import Sequence

from hubgate.server.accounts.tokens.model import NOTICE
from hubgate.server.storage.database import Row, Tx

_EXPIRED = "expires_at <= :now AND expired = 0"
# A token that lives no longer than the notice would be announced as soon as it is created.
_DUE = f"""
    expires_at > :now AND expires_at <= :now + {NOTICE} AND expires_at - created_at > {NOTICE}
    AND expiry_notified_at IS NULL
"""


async def has_work(tx: Tx, now: int) -> bool:
    sql = f"SELECT 1 FROM access_tokens WHERE ({_EXPIRED}) OR ({_DUE}) LIMIT 1"
    return await tx.one(sql, {"now": now}) is not None


async def mark_expired(tx: Tx, now: int, limit: int) -> int:
    return await tx.exec(
        f"""
        UPDATE access_tokens SET expired = 1
        WHERE {_EXPIRED} AND id IN (SELECT id FROM access_tokens WHERE {_EXPIRED} ORDER BY id LIMIT :limit)
        """,
        {"now": now, "limit": limit},
    )


async def mark_notified(tx: Tx, now: int, limit: int) -> Sequence[Row]:
    """Mark tokens that expire soon; returns user_id, name and expires_at. Of concurrent calls only one gets a token."""
    return await tx.all(
        f"""
        UPDATE access_tokens SET expiry_notified_at = CAST(:now AS bigint)
        WHERE {_DUE} AND id IN (SELECT id FROM access_tokens WHERE {_DUE} ORDER BY id LIMIT :limit)
        RETURNING user_id, name, expires_at
        """,
        {"now": now, "limit": limit},
    )


async def drop_expired(tx: Tx, before: int, limit: int) -> int:
    """Delete up to `limit` tokens that expired before a time."""
    return await tx.exec(
        """
        DELETE FROM access_tokens WHERE expires_at <= :before AND id IN (
            SELECT id FROM access_tokens WHERE expires_at <= :before LIMIT :limit
        )
        """,
        {"before": before, "limit": limit},
    )
