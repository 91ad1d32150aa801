"""Retention: deletes old entries a batch at a time, oldest first. Batch rows stay, so that the chain remains intact.

A batch is dropped once its seal is older than the retention period: its entries are older still.
A batch that does not verify is retained as evidence, and `hubgate doctor` reports it.
"""

import logging
from contextlib import suppress
from functools import cached_property, partial

from msgspec import Struct
from msgspec.structs import replace

from hubgate.server.audit import chain, store
from hubgate.server.audit.head import HeadAuthenticator
from hubgate.server.audit.model import Batch, Head
from hubgate.server.audit.seal import BATCH_SIZE, OrganizationRounds, Overtaken
from hubgate.server.clock import DAY, Clock
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database, Tx

log = logging.getLogger("hubgate.audit")


class AuditRetention(Struct, frozen=True, dict=True):
    """The retention loop. `days` is at least 1; without a retention period the loop does not run."""

    db: Database
    clock: Clock
    secret: ServerSecret
    days: int

    @cached_property
    def _rounds(self) -> OrganizationRounds:
        return OrganizationRounds(self._next_organization, self._drop_next)

    async def step(self) -> bool:
        """Drop one batch each of a few organizations; True if more may be due."""
        return await self._rounds.step()

    @property
    def _sealed_before(self) -> int:
        return self.clock() - self.days * DAY

    async def _next_organization(self, after: str) -> str | None:
        return await self.db.read_long(partial(store.next_droppable, sealed_before=self._sealed_before, after=after))

    async def _drop_next(self, org_id: str) -> bool:
        found = await self.db.read_long(partial(self._droppable, org_id=org_id))
        if found is None:
            return False
        # If a sealer moved the head concurrently, the next round tries again.
        with suppress(Overtaken):
            await self.db.write_long(partial(self._drop_batch, old=found[0], batch=found[1]))
        return True

    async def _droppable(self, tx: Tx, org_id: str) -> tuple[Head, Batch] | None:
        head = await store.head(tx, org_id)
        if head is None or not HeadAuthenticator(self.secret).is_genuine(head):
            return None
        oldest = await store.batches(tx, org_id, head.dropped, 1)
        if not oldest or oldest[0].sealed_at >= self._sealed_before or not await self._verifies(tx, head, oldest[0]):
            return None
        return head, oldest[0]

    async def _drop_batch(self, tx: Tx, old: Head, batch: Batch) -> None:
        await store.drop_entries(tx, batch.org_id, batch.seq)
        await store.mark_dropped(tx, batch.org_id, batch.seq, self.clock())
        if not await store.put_head(tx, HeadAuthenticator(self.secret).with_mac(replace(old, dropped=batch.seq)), old):
            raise Overtaken

    async def _verifies(self, tx: Tx, head: Head, batch: Batch) -> bool:
        if head.is_broken and batch.dropped_at is not None:
            # Dropped before the head was lost or changed outside the hub, which `head.broken` records.
            return True
        before = await store.last_batch(tx, batch.org_id, batch.seq)
        entries = await store.in_batches(tx, batch.org_id, batch.seq, batch.seq, BATCH_SIZE + 1)
        flaw = chain.find_flaw(batch, before.hash if before else chain.FIRST_PREVIOUS_HASH, entries)
        if flaw is not None:
            log.error("organization %s: audit batch %d is not deleted, because it %s", batch.org_id, batch.seq, flaw)
        return flaw is None
