"""Statements that find the webhooks of new shards which have something to send."""

from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.delivering.windows_store import REPLAYS, RETRIES, UNTRIED

# Webhooks that have deliveries of one kind: one seek in the index of that kind for each webhook.
_WITH_WORK = """
    SELECT id FROM (
        WITH RECURSIVE found(id, place) AS (
            SELECT min(d.webhook_id), 1 FROM deliveries d WHERE {condition} AND d.webhook_id > :after
            UNION ALL
            SELECT (SELECT min(d.webhook_id) FROM deliveries d WHERE {condition} AND d.webhook_id > f.id), f.place + 1
            FROM found f WHERE f.id IS NOT NULL AND f.place < CAST(:limit AS bigint)
        )
        SELECT id FROM found WHERE id IS NOT NULL
    ) f ORDER BY id
"""
WITH_WORK = tuple(_WITH_WORK.format(condition=condition) for condition in (UNTRIED, REPLAYS, RETRIES))


async def with_work(tx: Tx, statement: str, after: str, limit: int) -> list[str]:
    """The next webhooks after an id, with one of the statements in `WITH_WORK`."""
    return [row["id"] for row in await tx.all(statement, {"after": after, "limit": limit})]
