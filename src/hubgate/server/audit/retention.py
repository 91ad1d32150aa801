"""Forgetting: entries go a batch at a time, oldest first; what was sealed of them stays, so that the chain holds.

A batch goes when it was sealed more than the kept days ago: by then each of its entries is older. One that does not
verify stays: it is evidence, and `hubgate doctor` names it.
"""

import logging
from dataclasses import dataclass, field, replace
from functools import partial

from hubgate.server.audit import chain, store
from hubgate.server.audit.head import Heads
from hubgate.server.audit.model import Batch, Head
from hubgate.server.audit.seal import BATCH, Overtaken
from hubgate.server.clock import DAY, Clock
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database, Tx

log = logging.getLogger("hubgate.audit")

BATCHES_AT_ONCE = 20


@dataclass
class Retention:
    """`days` is at least 1: kept for ever, nothing runs."""

    db: Database
    clock: Clock
    secret: ServerSecret
    days: int
    _after: str = field(default="", init=False)
    _more: bool = field(default=False, init=False)

    async def step(self) -> bool:
        """A few organizations, a batch each, in turn."""
        sealed_before = self.clock() - self.days * DAY
        for _ in range(BATCHES_AT_ONCE):
            org_id = await self.db.read_long(
                partial(store.next_droppable, sealed_before=sealed_before, after=self._after)
            )
            if org_id is None:
                more, self._after, self._more = self._more, "", False
                return more
            self._after = org_id
            if await self._drop(org_id, sealed_before):
                self._more = True
        return True

    async def _drop(self, org_id: str, sealed_before: int) -> bool:
        try:
            return await self.db.write_long(lambda tx: self._unit(tx, org_id, sealed_before))
        except Overtaken:
            return True

    async def _unit(self, tx: Tx, org_id: str, sealed_before: int) -> bool:
        head = await store.head(tx, org_id)
        if head is None or not Heads(self.secret).is_genuine(head):
            return False
        kept = await store.batches(tx, org_id, head.dropped, 1)
        if not kept or kept[0].sealed_at >= sealed_before or not await self._is_sound(tx, head, kept[0]):
            return False
        await store.drop_entries(tx, org_id, kept[0].seq)
        await store.mark_dropped(tx, org_id, kept[0].seq, self.clock())
        if not await store.put_head(tx, Heads(self.secret).vouched(replace(head, dropped=kept[0].seq)), head):
            raise Overtaken
        return True

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
