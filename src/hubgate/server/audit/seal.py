"""Sealing: new entries of each organization become the next batch of its chain.

Use cases insert entries and never wait for this. A transaction may commit long after others that began later: its entry
belongs to the batch that finds it, whatever time it bears. One unit keeps a batch, so that a death at any moment leaves
the chain as it was before or after; of two sealers at once, one finds the number taken and does nothing.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from hubgate.server import failpoint
from hubgate.server.audit import chain, store
from hubgate.server.audit.head import Heads
from hubgate.server.audit.model import Batch, Entry, Head
from hubgate.server.audit.rounds import Rounds
from hubgate.server.clock import Clock
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database, Tx

log = logging.getLogger("hubgate.audit")

BATCH = 500


class Overtaken(Exception):
    """Somebody else moved the chain meanwhile; nothing of this unit remains."""


@dataclass(frozen=True)
class Draft:
    """A batch that fits behind the head `old`, and the head that it makes."""

    entries: Sequence[Entry]
    batch: Batch
    old: Head | None
    new: Head


@dataclass(frozen=True)
class Sealer:
    db: Database
    clock: Clock
    secret: ServerSecret

    @cached_property
    def _rounds(self) -> Rounds:
        return Rounds(partial(store.next_unsealed, self.db), self._has_more)

    async def step(self) -> bool:
        """A few organizations, a batch each."""
        return await self._rounds.step()

    async def _has_more(self, org_id: str) -> bool:
        return await self.seal(org_id) == BATCH

    async def seal(self, org_id: str) -> int:
        """One batch. How many entries it holds."""
        # Looked up and hashed first: whoever writes waits for the writing alone.
        draft = await self.db.read_long(lambda tx: self._draft(tx, org_id))
        if draft is None:
            return 0
        try:
            await self.db.write_long(lambda tx: _keep(tx, draft))
        except Overtaken:
            return 0
        return draft.batch.entries

    async def _draft(self, tx: Tx, org_id: str) -> Draft | None:
        old = await store.head(tx, org_id)
        entries = await store.unsealed(tx, org_id, BATCH)
        if not entries:
            return None
        end = await self._end(tx, org_id, old)
        batch = chain.sealed_batch(org_id, end.seq + 1, self.clock(), end.hash, entries)
        new = Heads(self.secret).vouched(replace(end, seq=batch.seq, hash=batch.hash))
        return Draft(entries, batch, old, new)

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


async def _keep(tx: Tx, draft: Draft) -> None:
    """All of it, or nothing if the chain was moved since the draft was made."""
    if not await store.add_batch(tx, draft.batch):
        raise Overtaken
    await store.put_in_batch(tx, draft.entries, draft.batch.seq)
    failpoint.hit("audit.sealing")
    if not await store.put_head(tx, draft.new, draft.old):
        raise Overtaken
