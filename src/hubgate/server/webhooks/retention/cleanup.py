"""The background job that deletes, in small batches, deliveries and events past the retention period, and the
remaining rows of deleted webhooks.
"""

from dataclasses import dataclass

from hubgate.server.clock import DAY
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.management import store as managing_store
from hubgate.server.webhooks.retention import store

EVERY_SECONDS = 60.0
BATCH = 500


@dataclass(frozen=True)
class Retention:
    webhooks: Webhooks
    days: int

    async def step(self) -> bool:
        """Delete a batch of each; whether to continue at once."""
        before = self.webhooks.clock() - self.days * DAY
        write = self.webhooks.db.write_long
        deleted = [
            await write(lambda tx: store.drop_deliveries(tx, before, BATCH)),
            await write(lambda tx: store.drop_events(tx, before, BATCH)),
        ]
        return await write(_delete_abandoned) or BATCH in deleted


async def _delete_abandoned(tx: Tx) -> bool:
    webhook_id = await managing_store.any_abandoned(tx)
    if webhook_id is not None:
        await managing_store.drop_abandoned(tx, webhook_id, BATCH)
    return webhook_id is not None
