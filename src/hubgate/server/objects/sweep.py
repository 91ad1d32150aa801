"""Finds content that nothing refers to, and deletes it a day later (`deletions.py`)."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic

from hubgate.server import failpoint
from hubgate.server.clock import DAY, MINUTE, Clock
from hubgate.server.errors import HubError
from hubgate.server.objects import store
from hubgate.server.objects.deletions import MAX_LINKING_TIME
from hubgate.server.objects.model import Objects, StoredObject, StoreRefused
from hubgate.server.storage.database import Database, Tx

log = logging.getLogger("hubgate.worker")

KEYS_PER_STEP = 500
# A terabyte on a slow connection takes more than a day.
ABANDONED_UPLOAD_AGE = 7 * DAY
# A process stops deleting some minutes before another takes over: one request to a slow store takes two.
LONGEST_DELETION_SECONDS = 5 * 60.0
INTERRUPTED_AGE = 10 * MINUTE

# Those of the keys that something refers to, and those that are not the hub's.
FindUsed = Callable[[Tx, Sequence[str]], Awaitable[set[str]]]


@dataclass
class UnusedContentSweep:
    """Sweeps content of one kind, the first segment of its keys. Several processes may do so at once, but one of them
    deletes an object: a second deletion could follow an upload of the same content.
    """

    db: Database
    objects: Objects
    clock: Clock
    kind: str
    find_used: FindUsed
    _round: AsyncGenerator[StoredObject, None] | None = field(default=None)
    _refusal_is_logged: bool = field(default=False)

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
        async def begin(tx: Tx) -> list[str]:
            due = await store.due(tx, self.kind, times, KEYS_PER_STEP)
            used = await self._used(tx, due)
            await store.remove(tx, [key for key in due if key in used])
            return await store.begin(tx, [key for key in due if key not in used], times)

        while True:
            now, until = self.clock(), monotonic() + LONGEST_DELETION_SECONDS
            times = store.Times(now, now - MAX_LINKING_TIME, now - INTERRUPTED_AGE)
            if not (keys := await self.db.write_long(begin)):
                return
            await self._delete(keys, now, until)

    async def _delete(self, keys: Sequence[str], begun: int, until: float) -> None:
        failpoint.hit("object-deletion-begun")
        deleted: list[str] = []
        refused: list[str] = []

        async def end(tx: Tx) -> None:
            await store.end(tx, deleted, refused, keys[len(deleted) + len(refused) :], begun)

        try:
            for key in keys:
                if monotonic() >= until:
                    break
                try:
                    await self.objects.delete(key)
                    deleted.append(key)
                except StoreRefused as error:
                    refused.append(key)
                    self._log_refusal(key, error)
            failpoint.hit("object-deleted")
        except Exception:
            await self.db.write_long(end)
            raise
        await self.db.write_long(end)

    def _log_refusal(self, key: str, error: StoreRefused) -> None:
        """Once: a store that refuses to delete one object usually refuses to delete all."""
        if not self._refusal_is_logged:
            self._refusal_is_logged = True
            text = "%s refuses to delete unused content such as %s, which is tried again every day: %s"
            log.warning(text, self.objects.name, key, error.__cause__ or error)

    async def _used(self, tx: Tx, keys: Sequence[str]) -> set[str]:
        return await self.find_used(tx, keys) if keys else set()
