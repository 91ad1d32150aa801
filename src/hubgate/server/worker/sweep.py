"""Deletes what has expired, in small batches, so that tables and hot look-ups stay bounded."""

from dataclasses import dataclass

from hubgate.server.accounts.links import store as link_store
from hubgate.server.accounts.organizations import store as org_store
from hubgate.server.accounts.sessions import store as session_store
from hubgate.server.accounts.sessions.model import LASTS as SESSION_LASTS
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
        dropped = [
            await self.db.write_long(lambda tx: throttle_store.drop_expired(tx, now, BATCH)),
            await self.db.write_long(lambda tx: session_store.drop_expired(tx, now - SESSION_LASTS, BATCH)),
            await self.db.write_long(lambda tx: link_store.drop_expired(tx, now, BATCH)),
            await self.db.write_long(lambda tx: org_store.drop_expired_invitations(tx, now, BATCH)),
        ]
        return BATCH in dropped
