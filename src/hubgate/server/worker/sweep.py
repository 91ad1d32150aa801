"""Deletes what has expired, in small batches, so that tables and hot look-ups stay bounded."""

from dataclasses import dataclass

from hubgate.server.clock import Clock
from hubgate.server.storage.database import Database
from hubgate.server.throttle import store as throttle_store
from hubgate.server.worker.loops import Loop

BATCH = 500


@dataclass(frozen=True)
class Sweep:
    db: Database
    clock: Clock

    def loop(self) -> Loop:
        return Loop("sweep", every_seconds=30, step=self.step)

    async def step(self) -> bool:
        now = self.clock()
        return await self.db.write_long(lambda tx: throttle_store.drop_expired(tx, now, BATCH)) == BATCH
