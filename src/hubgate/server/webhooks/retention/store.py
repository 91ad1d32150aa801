"""SQL statements that delete old deliveries and events."""

from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.delivering.store import ALIVE


async def drop_deliveries(tx: Tx, before: int, most: int) -> int:
    """Delete deliveries that finished before `before`; queued and leased deliveries stay. The condition on `created_at`
    follows from `ended_at` and lets the statement use the index.
    """
    return await tx.exec(
        f"""
        DELETE FROM deliveries WHERE id IN (
            SELECT id FROM deliveries
            WHERE created_at < :before AND COALESCE(ended_at, created_at) < :before AND NOT ({ALIVE})
                AND lease_until IS NULL
            ORDER BY created_at LIMIT :most
        )
        """,
        {"before": before, "most": most},
    )


async def drop_events(tx: Tx, before: int, most: int) -> int:
    """Delete events created before `before` that were fanned out and have no deliveries."""
    return await tx.exec(
        """
        DELETE FROM events WHERE id IN (
            SELECT e.id FROM events e
            WHERE e.created_at < :before AND e.fanned_at IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event_id = e.id)
            ORDER BY e.created_at LIMIT :most
        )
        """,
        {"before": before, "most": most},
    )
