"""Skips, or queues again, the deliveries of large backlogs in small units: SQLite has a single writer."""

from msgspec import Struct

from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.management import backlog_store
from hubgate.server.webhooks.management.store import lock, with_backlog

EVERY_SECONDS = 2.0


class Backlogs(Struct, frozen=True):
    """The background job that continues where disabling, suspending or resuming a webhook stopped."""

    webhooks: Webhooks

    async def step(self) -> bool:
        """Process a batch, and return whether to continue at once."""
        webhook_id = await with_backlog(self.webhooks.db)
        if webhook_id is None:
            return False

        async def unit(tx: Tx) -> None:
            now = self.webhooks.clock()
            await lock(tx, webhook_id)
            if not await backlog_store.skip_batch(tx, webhook_id, now):
                await backlog_store.requeue_batch(tx, webhook_id, now)

        await self.webhooks.db.write_long(unit)
        return True
