"""Forgetting: entries go a batch at a time, oldest first; what was sealed of them stays, so that the chain holds.

A batch goes when it was sealed more than the kept days ago: by then each of its entries is older. One that does not
verify stays: it is evidence, and `hubgate doctor` names it.
"""

import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial

from hubgate.server.audit import chain, store
from hubgate.server.audit.head import Heads
from hubgate.server.audit.model import Batch, Head
from hubgate.server.audit.rounds import Rounds
from hubgate.server.audit.seal import BATCH, Overtaken
from hubgate.server.clock import DAY, Clock
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database, Tx

log = logging.getLogger("hubgate.audit")


@dataclass(frozen=True)
class Retention:
    """`days` is at least 1: kept for ever, nothing runs."""

    db: Database
    clock: Clock
    secret: ServerSecret
    days: int

    @cached_property
    def _rounds(self) -> Rounds:
        return Rounds(self._following, self._drop)

    async def step(self) -> bool:
        """A few organizations, a batch each."""
        return await self._rounds.step()

    @property
    def _sealed_before(self) -> int:
        return self.clock() - self.days * DAY

    async def _following(self, after: str) -> str | None:
        return await self.db.read_long(partial(store.next_droppable, sealed_before=self._sealed_before, after=after))

    async def _drop(self, org_id: str) -> bool:
        found = await self.db.read_long(partial(self._droppable, org_id=org_id))
        if found is None:
            return False
        # Overtaken by a sealer, its turn comes again.
        with suppress(Overtaken):
            await self.db.write_long(partial(self._forget, old=found[0], batch=found[1]))
        return True

    async def _droppable(self, tx: Tx, org_id: str) -> tuple[Head, Batch] | None:
        head = await store.head(tx, org_id)
        if head is None or not Heads(self.secret).is_genuine(head):
            return None
        kept = await store.batches(tx, org_id, head.dropped, 1)
        if not kept or kept[0].sealed_at >= self._sealed_before or not await self._is_sound(tx, head, kept[0]):
            return None
        return head, kept[0]

    async def _forget(self, tx: Tx, old: Head, batch: Batch) -> None:
        await store.drop_entries(tx, batch.org_id, batch.seq)
        await store.mark_dropped(tx, batch.org_id, batch.seq, self.clock())
        if not await store.put_head(tx, Heads(self.secret).vouched(replace(old, dropped=batch.seq)), old):
            raise Overtaken

    async def _is_sound(self, tx: Tx, head: Head, batch: Batch) -> bool:
        if head.is_broken and batch.dropped_at is not None:
            # Dropped before the head was lost, which is on record.
            return True
        before = await store.last_batch(tx, batch.org_id, batch.seq)
        entries = await store.in_batches(tx, batch.org_id, batch.seq, batch.seq, BATCH + 1)
        flaw = chain.flaw(batch, before.hash if before else chain.FIRST, entries)
        if flaw is not None:
            log.error("organization %s keeps audit batch %d, which %s", batch.org_id, batch.seq, flaw)
        return flaw is None
