"""Suspends webhooks that have failed for too long."""

from collections.abc import Sequence

from msgspec.structs import replace

from hubgate.server.storage.database import Row, Tx
from hubgate.server.webhooks import notifications
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering.results_store import Result
from hubgate.server.webhooks.health import Health
from hubgate.server.webhooks.management import backlog_store, store
from hubgate.server.webhooks.model import SUSPENDED, SUSPENDED_AFTER
from hubgate.server.webhooks.requests.outcome import GONE


async def suspend_or_warn(
    tx: Tx, webhooks: Webhooks, row: Row, health: Health, failed: Sequence[Result], now: int
) -> Health:
    """Suspend the webhook after 410 or five days without a success; half-way, warn its owner."""
    webhook_id, since = row["id"], health.failing_since
    lasted = 0 if since is None else now - since
    is_gone = any(result.status == GONE for result in failed)
    if is_gone or (failed and lasted >= SUSPENDED_AFTER):
        if await store.suspend(tx, webhook_id, now):
            await backlog_store.skip_all(tx, webhook_id, SUSPENDED, now)
            # Including the failed delivery: all that enabling the webhook would send again.
            missed = await backlog_store.missed(tx, webhook_id, now)
            await notifications.notify_suspended(tx, webhooks, webhook_id, missed)
        if since is None:
            # Another request succeeded after the 410.
            return replace(health, failing_since=now)
    elif failed and since is not None and lasted >= SUSPENDED_AFTER // 2 and health.warned_at is None:
        await notifications.warn_half_way(tx, webhooks, webhook_id, since, failed[-1].status)
        return replace(health, warned_at=now)
    return health
