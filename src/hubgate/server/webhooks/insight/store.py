"""SQL statements for the operator's view of deliveries."""

from collections.abc import Sequence

from hubgate.server.storage.database import Row, Tx
from hubgate.server.webhooks.delivering.windows_store import REPLAYS, RETRIES, UNTRIED
from hubgate.server.webhooks.model import ENABLED

# Each count reads one partial index.
_COUNTS = f"""
    SELECT (SELECT count(*) FROM deliveries d WHERE {UNTRIED}) + (SELECT count(*) FROM deliveries d WHERE {REPLAYS})
            AS new_deliveries,
        (SELECT count(*) FROM deliveries d WHERE {RETRIES}) AS retries,
        (SELECT count(*) FROM events WHERE fanned_at IS NULL) AS events
"""
_FAILING = f"""
    SELECT url, failing_since FROM webhooks
    WHERE failing_since IS NOT NULL AND state = '{ENABLED}' AND url IS NOT NULL ORDER BY failing_since LIMIT :limit
"""


async def counts(tx: Tx) -> Row:
    """Waiting new_deliveries, retries and events."""
    row = await tx.one(_COUNTS)
    assert row is not None, "without a condition"  # noqa: S101
    return row


async def senders(tx: Tx) -> Sequence[Row]:
    """id, heartbeat, machine, and attempts in the last minute, of each process that sends or has died."""
    return await tx.all("SELECT id, heartbeat, machine, attempts FROM senders")


async def failing(tx: Tx, limit: int) -> Sequence[Row]:
    """url and failing_since of webhooks whose recent attempts all failed, the oldest first."""
    return await tx.all(_FAILING, {"limit": limit})
