"""The SQL statement for the age of the backlog."""

from hubgate.server.storage.database import Database
from hubgate.server.webhooks.model import ENABLED


async def oldest_waiting(db: Database, now: int) -> int | None:
    """The time of the oldest event not yet fanned out, or the earliest due time of an enabled webhook."""
    row = await db.one(
        f"""
        SELECT min(x.moment) AS moment FROM (
            -- The sum selects the index on events not fanned out; the index on created_at would scan all events.
            SELECT min(created_at + 0) AS moment FROM events WHERE fanned_at IS NULL
            UNION ALL
            SELECT min(next_due_at) FROM webhooks WHERE state = '{ENABLED}' AND closed_until <= :now
        ) x
        """,
        {"now": now},
    )
    return row["moment"] if row else None
