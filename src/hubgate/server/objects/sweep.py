"""Finds content that nothing refers to, and deletes it a day later (`deletions.py`)."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from hubgate.server import failpoint
from hubgate.server.clock import DAY, Clock
from hubgate.server.errors import HubError
from hubgate.server.objects import store
from hubgate.server.objects.deletions import MAX_LINKING_TIME
from hubgate.server.objects.model import Objects, StoredObject
from hubgate.server.storage.database import Database, Tx

log = logging.getLogger("hubgate.worker")

KEYS_PER_STEP = 500
# A terabyte on a slow connection takes more than a day.
ABANDONED_UPLOAD_AGE = 7 * DAY

# Those of the keys that something refers to, and those that are not the hub's.
FindUsed = Callable[[Tx, Sequence[str]], Awaitable[set[str]]]


@dataclass
class UnusedContentSweep:
    """Sweeps content of one kind, the first segment of its keys. Only one process may do so at a time, or the work is
    done twice, without harm.
    """

    db: Database
    objects: Objects
    clock: Clock
    kind: str
    find_used: FindUsed
    _round: AsyncGenerator[StoredObject, None] | None = field(default=None)

    async def step(self) -> bool:
        """Check one batch of content; return whether the round has more. If the store fails, the round is repeated."""
        try:
            keys = await self._next_keys()
            await self._mark_unused(keys)
            await self._delete_due()
        except HubError as error:
            log.warning("unused content of %s will be deleted later: %s", self.objects.name, error.__cause__ or error)
            await self._end_round()
            return False
        return len(keys) == KEYS_PER_STEP

    async def _next_keys(self) -> list[str]:
        if self._round is None:
            await self.objects.delete_unfinished(self.clock() - ABANDONED_UPLOAD_AGE)
            self._round = self.objects.list(f"{self.kind}/")
        keys: list[str] = []
        async for item in self._round:
            keys.append(item.key)
            if len(keys) == KEYS_PER_STEP:
                return keys
        await self._end_round()
        return keys

    async def _end_round(self) -> None:
        if self._round is not None:
            await self._round.aclose()
            self._round = None

    async def _mark_unused(self, keys: Sequence[str]) -> None:
        used = await self.db.read_long(lambda tx: self._used(tx, keys))
        unused = [key for key in keys if key not in used]
        if unused:
            now = self.clock()
            await self.db.write_long(lambda tx: store.mark(tx, self.kind, unused, now))

    async def _delete_due(self) -> None:
        before = self.clock() - MAX_LINKING_TIME

        async def begin(tx: Tx) -> list[str]:
            due = await store.due(tx, self.kind, before, KEYS_PER_STEP)
            used = await self._used(tx, due)
            await store.remove(tx, [key for key in due if key in used])
            return await store.begin(tx, [key for key in due if key not in used])

        while keys := await self.db.write_long(begin):
            await self._delete(keys)

    async def _delete(self, keys: Sequence[str]) -> None:
        failpoint.hit("object-deletion-begun")
        for key in keys:
            await self.objects.delete(key)
        failpoint.hit("object-deleted")
        await self.db.write_long(lambda tx: store.remove(tx, keys))

    async def _used(self, tx: Tx, keys: Sequence[str]) -> set[str]:
        return await self.find_used(tx, keys) if keys else set()
