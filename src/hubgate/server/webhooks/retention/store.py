"""SQL statements that delete webhooks, old deliveries and old events."""

from hubgate.server.ids import first_id
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.deliveries_store import ALIVE
from hubgate.server.webhooks.model import DISABLED


async def drop_deliveries(tx: Tx, before: int, limit: int) -> int:
    """Delete deliveries that finished before `before`. Ids begin with the time of creation, so that the primary key
    finds old ones.
    """
    return await tx.exec(
        f"""
        DELETE FROM deliveries WHERE id IN (
            SELECT id FROM deliveries
            WHERE id < :before_id AND COALESCE(ended_at, created_at) < :before AND NOT ({ALIVE})
            ORDER BY id LIMIT :limit
        )
        """,
        {"before": before, "before_id": first_id(before), "limit": limit},
    )


async def drop_events(tx: Tx, before: int, limit: int) -> int:
    """Delete events created before `before` that were fanned out and have no deliveries."""
    return await tx.exec(
        """
        DELETE FROM events WHERE id IN (
            SELECT e.id FROM events e
            WHERE e.created_at < :before AND e.fanned_at IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event_id = e.id)
            ORDER BY e.created_at LIMIT :limit
        )
        """,
        {"before": before, "limit": limit},
    )


async def ids_of_owner(tx: Tx, owner_id: str) -> list[str]:
    """The webhooks of a user or an organization, in lock order."""
    sql = "SELECT id FROM webhooks WHERE user_id = :owner_id OR org_id = :owner_id ORDER BY id"
    return [row["id"] for row in await tx.all(sql, {"owner_id": owner_id})]


async def detach(tx: Tx, webhook_id: str) -> None:
    """Remove the owner, the watches and the secrets. Results of a webhook without an owner are not stored."""
    await tx.exec(
        f"""
        UPDATE webhooks SET user_id = NULL, org_id = NULL, url = NULL, secret = NULL, old_secret = NULL,
            old_secret_until = NULL, state = '{DISABLED}'
        WHERE id = :id
        """,
        {"id": webhook_id},
    )
    await tx.exec("DELETE FROM watches WHERE webhook_id = :id", {"id": webhook_id})


async def any_detached(tx: Tx) -> str | None:
    row = await tx.one("SELECT id FROM webhooks WHERE user_id IS NULL AND org_id IS NULL LIMIT 1")
    return row["id"] if row else None


async def drop_detached(tx: Tx, webhook_id: str, limit: int) -> None:
    """Delete a batch of deliveries, with their attempts by cascade, and the webhook once no deliveries are left."""
    deleted = await tx.exec(
        """
        DELETE FROM deliveries WHERE id IN (
            SELECT id FROM deliveries WHERE webhook_id = :id ORDER BY seq LIMIT :limit
        )
        """,
        {"id": webhook_id, "limit": limit},
    )
    if deleted < limit:
        await tx.exec("DELETE FROM webhooks WHERE id = :id", {"id": webhook_id})
