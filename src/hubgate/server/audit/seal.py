"""Sealing: new entries of each organization become the next batch of its chain.

Use cases insert entries and never wait for sealing. A transaction may commit long after others that started later: its
entry is sealed in the next batch after its commit, regardless of its time. A batch is stored in one transaction, so a
crash never leaves it half stored; of two concurrent sealers, the second finds the batch number taken and does nothing.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from msgspec import Struct
from msgspec.structs import replace

from hubgate.server import failpoint
from hubgate.server.audit import chain, store
from hubgate.server.audit.head import HeadAuthenticator
from hubgate.server.audit.model import Batch, Entry, Head
from hubgate.server.clock import Clock
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database, Tx

log = logging.getLogger("hubgate.audit")

BATCH_SIZE = 500
# Small enough that a step takes far less time than the lease of a background loop (worker/loops.py).
ORGANIZATIONS_AT_ONCE = 20


class Overtaken(Exception):
    """Another process moved the head of the chain concurrently; raised to roll back the transaction."""


class NextBatch(Struct, frozen=True):
    """A batch that follows the head `old`, and the resulting head `new`."""

    entries: Sequence[Entry]
    batch: Batch
    old: Head | None
    new: Head


@dataclass
class OrganizationRounds:
    """A round-robin over organizations that have work, a few in each step. `find_next` finds the next organization by
    id; `work` does a part of its work and returns whether more is left."""

    find_next: Callable[[str], Awaitable[str | None]]
    work: Callable[[str], Awaitable[bool]]
    # The last organization of this round so far, and whether any has work left for the next round.
    _after: str = field(default="", init=False)
    _more: bool = field(default=False, init=False)

    async def step(self) -> bool:
        """Run one step; True if the next step should follow at once. Every organization gets one turn per round."""
        for _ in range(ORGANIZATIONS_AT_ONCE):
            org_id = await self.find_next(self._after)
            if org_id is None:
                more, self._after, self._more = self._more, "", False
                return more
            # Set before the work: an organization that fails must not block the others.
            self._after = org_id
            if await self.work(org_id):
                self._more = True
        return True


class Sealer(Struct, frozen=True, dict=True):
    db: Database
    clock: Clock
    secret: ServerSecret

    @cached_property
    def _rounds(self) -> OrganizationRounds:
        return OrganizationRounds(partial(store.next_unsealed, self.db), self._seal_next)

    async def step(self) -> bool:
        """Seal one batch each of a few organizations; True if more may be waiting."""
        return await self._rounds.step()

    async def _seal_next(self, org_id: str) -> bool:
        """Seal one batch; returns whether more may be waiting."""
        return await self.seal(org_id) == BATCH_SIZE

    async def seal(self, org_id: str) -> int:
        """Seal one batch; returns its number of entries."""
        # Read and hash before the write transaction, so that other writers do not wait for it.
        draft = await self.db.read_long(lambda tx: self._draft(tx, org_id))
        if draft is None:
            return 0
        try:
            await self.db.write_long(lambda tx: _store(tx, draft))
        except Overtaken:
            return 0
        return draft.batch.entries

    async def _draft(self, tx: Tx, org_id: str) -> NextBatch | None:
        old = await store.head(tx, org_id)
        entries = await store.unsealed(tx, org_id, BATCH_SIZE)
        if not entries:
            return None
        end = await self._head_to_extend(tx, org_id, old)
        batch = chain.sealed_batch(org_id, end.seq + 1, self.clock(), end.hash, entries)
        new = HeadAuthenticator(self.secret).with_mac(replace(end, seq=batch.seq, hash=batch.hash))
        return NextBatch(entries, batch, old, new)

    async def _head_to_extend(self, tx: Tx, org_id: str, old: Head | None) -> Head:
        """The head to continue from. If the stored head is not genuine, the new head records that in `broken`."""
        if old is not None and HeadAuthenticator(self.secret).is_genuine(old):
            return old
        last = await store.last_batch(tx, org_id)
        if old is None and last is None:
            return Head(org_id, 0, chain.FIRST_PREVIOUS_HASH)
        seq = max(old.seq if old else 0, last.seq if last else 0)
        log.error("the audit log of organization %s was changed outside the hub; run: hubgate doctor", org_id)
        return Head(
            org_id,
            seq,
            last.hash if last else chain.FIRST_PREVIOUS_HASH,
            dropped=old.dropped if old else 0,
            broken=seq + 1,
        )


async def _store(tx: Tx, draft: NextBatch) -> None:
    """Store a draft; Overtaken if another process has moved the head since the draft was created."""
    if not await store.add_batch(tx, draft.batch):
        raise Overtaken
    await store.put_in_batch(tx, draft.entries, draft.batch.seq)
    failpoint.hit("audit.sealing")
    if not await store.put_head(tx, draft.new, draft.old):
        raise Overtaken
