"""Deliveries and events are kept for as long as the operator says, then dropped in small batches."""

from dataclasses import dataclass

from hubgate.server.clock import DAY
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.retention import store

EVERY_SECONDS = 60.0
BATCH = 500


@dataclass(frozen=True)
class Retention:
    webhooks: Webhooks
    days: int

    async def step(self) -> bool:
        """Whether there is more to do at once. An event stays until it was fanned out and no delivery needs it."""
        before = self.webhooks.clock() - self.days * DAY
        write = self.webhooks.db.write_long
        dropped = [
            await write(lambda tx: store.drop_deliveries(tx, before, BATCH)),
            await write(lambda tx: store.drop_events(tx, before, BATCH)),
        ]
        return BATCH in dropped
