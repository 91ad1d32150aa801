"""Since when something has been waiting for a process that delivers."""

from hubgate.server.storage.database import Database
from hubgate.server.webhooks.model import ENABLED


async def waiting_since(db: Database, now: int) -> int | None:
    """The oldest event that nobody was told of, or the oldest moment at which a webhook should have been served."""
    row = await db.one(
        f"""
        SELECT min(x.moment) AS moment FROM (
            -- The sum keeps to the index of what was not fanned out; that of times would lead through every event.
            SELECT min(created_at + 0) AS moment FROM events WHERE fanned_at IS NULL
            UNION ALL
            SELECT min(next_due_at) FROM webhooks WHERE state = '{ENABLED}' AND closed_until <= :now
        ) x
        """,
        {"now": now},
    )
    return row["moment"] if row else None
