"""Deletes xorbs that nothing refers to, a day after that was first found.

A xorb is needed by the files that refer to it, and for a day by every upload to the repo that it was sent to: the shard
that refers to it is the last request of an upload. The row is deleted first, in a transaction that a shard which begins
to refer to the xorb cannot pass (`deletion_store.py`), then the object, whose key is never used again.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from hubgate.server.clock import DAY
from hubgate.server.hub.cas import deletion_store
from hubgate.server.hub.cas.model import key_of
from hubgate.server.hub.context import Repos
from hubgate.server.objects.model import StoreRefused
from hubgate.server.storage.database import Tx

UNUSED_AGE = DAY
XORBS_PER_STEP = 500


async def find_used_objects(tx: Tx, keys: Sequence[str]) -> set[str]:
    """Those objects that belong to a xorb, and those that are not the hub's."""
    ids = {key: key.rpartition("/")[2] for key in keys}
    stored = await deletion_store.stored_among(tx, set(ids.values()))
    return {key for key, xorb_id in ids.items() if xorb_id in stored or key != key_of(xorb_id)}


@dataclass
class XorbCleanup:
    repos: Repos

    async def step(self) -> bool:
        """Mark xorbs without references and delete some that were marked a day ago; whether there may be more."""
        now = self.repos.clock()
        before = now - UNUSED_AGE

        unused = await self.repos.db.read_long(lambda tx: deletion_store.newly_unused(tx, XORBS_PER_STEP))

        async def mark(tx: Tx) -> list[str]:
            await deletion_store.unmark(tx)
            await deletion_store.mark(tx, unused, now)
            await deletion_store.forget_old_uploads(tx, before)
            return await deletion_store.due(tx, before, XORBS_PER_STEP)

        due = await self.repos.db.write_long(mark)
        for xorb_id in due:
            if await self.repos.db.write_long(partial(deletion_store.delete, xorb_id=xorb_id, before=before)):
                # If this fails, the sweep of unused objects deletes it, and reports a store that refuses.
                with suppress(StoreRefused):
                    await self.repos.objects.delete(key_of(xorb_id))
        return XORBS_PER_STEP in (len(due), len(unused))
