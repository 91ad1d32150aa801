"""Sealing: new entries of each organization become the next batch of its chain.

Use cases insert entries and never wait for this. A transaction may commit long after others that began later: its entry
belongs to the batch that finds it, whatever time it bears. One unit makes a batch, so that a death at any moment leaves
the chain as it was before or after; of two sealers at once, one finds the number taken and does nothing.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hubgate.server import failpoint
from hubgate.server.audit import chain, store
from hubgate.server.audit.head import Heads
from hubgate.server.audit.model import Entry, Head
from hubgate.server.clock import Clock
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database, Tx

log = logging.getLogger("hubgate.audit")

BATCH = 500
# One step stays far below the time for which a loop is leased.
ORGANIZATIONS_AT_ONCE = 20


class Overtaken(Exception):
    """Somebody else moved the chain meanwhile; nothing of this unit remains."""


@dataclass
class Sealer:
    db: Database
    clock: Clock
    secret: ServerSecret
    # Where this round has come to, and whether somebody will have entries left when it ends.
    _after: str = field(default="", init=False)
    _more: bool = field(default=False, init=False)

    async def step(self) -> bool:
        """A few organizations, a batch each: one with a hundred thousand entries waits for its next turn."""
        for _ in range(ORGANIZATIONS_AT_ONCE):
            org_id = await store.next_unsealed(self.db, self._after)
            if org_id is None:
                more, self._after, self._more = self._more, "", False
                return more
            # Before it is tried: one that fails must not keep the others.
            self._after = org_id
            if await self.seal(org_id) == BATCH:
                self._more = True
        return True

    async def seal(self, org_id: str) -> int:
        """One batch. How many entries it holds."""
        try:
            return await self.db.write_long(lambda tx: self._unit(tx, org_id))
        except Overtaken:
            return 0

    async def _unit(self, tx: Tx, org_id: str) -> int:
        old = await store.head(tx, org_id)
        end = await self._end(tx, org_id, old)
        entries = await store.unsealed(tx, org_id, BATCH)
        if entries:
            await self._extend(tx, old, end, entries)
        return len(entries)

    async def _end(self, tx: Tx, org_id: str, old: Head | None) -> Head:
        """What to continue from. A head that is not ours is not healed by the next batch: it stays on record."""
        if old is not None and Heads(self.secret).is_genuine(old):
            return old
        last = await store.last_batch(tx, org_id)
        if old is None and last is None:
            return Head(org_id, 0, chain.FIRST)
        seq = max(old.seq if old else 0, last.seq if last else 0)
        log.error("the audit log of organization %s was changed from outside; run: hubgate doctor", org_id)
        return Head(
            org_id,
            seq,
            last.hash if last else chain.FIRST,
            dropped=old.dropped if old else 0,
            broken=seq + 1,
        )

    async def _extend(self, tx: Tx, old: Head | None, end: Head, entries: Sequence[Entry]) -> None:
        batch = chain.sealed_batch(end.org_id, end.seq + 1, self.clock(), end.hash, entries)
        if not await store.add_batch(tx, batch):
            raise Overtaken
        await store.put_in_batch(tx, entries, batch.seq)
        failpoint.hit("audit.sealing")
        head = Heads(self.secret).vouched(replace(end, seq=batch.seq, hash=batch.hash))
        if not await store.put_head(tx, head, old):
            raise Overtaken
