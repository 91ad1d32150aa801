"""Which process sends for which webhooks.

Webhooks are divided into 256 shards; each shard is owned by one running process, and only the owner sends. A process
changes its heartbeat every two seconds. It is taken over if others see no change for twenty seconds, measured on their
own monotonic clocks, or at once if it ran on this machine and has died. It stops sending well before that, so that two
processes never send for the same webhook. Every unit that writes for an owner checks that it was not taken over.
"""

import contextlib
import logging
import os
import secrets
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hubgate.server.jobs.heartbeats import Heartbeats, lock, this_machine
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.signals import Signal
from hubgate.server.webhooks.model import Pace
from hubgate.server.webhooks.shards import store
from hubgate.server.webhooks.shards.store import SHARDS

log = logging.getLogger("hubgate.deliver")


class TakenOver(Exception):
    """Another process has taken over the shards of this process, so the queue in memory is void."""


@dataclass(eq=False)
class Ownership:
    db: Database
    pace: Pace
    # Where running processes of this machine have lock files; None without them.
    folder: Path | None = None
    id: str = ""
    shards: set[int] = field(default_factory=set)
    # Running processes, this one included.
    processes: int = 1
    _share: int = SHARDS
    # The monotonic time at which the last heartbeat that was stored began.
    _beaten_at: float = 0.0
    _lock: int | None = None

    def __post_init__(self) -> None:
        self._heartbeats = Heartbeats(self.pace.dead_after_seconds, self.folder)

    async def start(self) -> None:
        """Register this process. Called again after a takeover, under a new id."""
        self._unlock()
        self.id, self.shards = secrets.token_hex(12), set()
        self._lock = lock(self.folder / self.id) if self.folder else None
        began = time.monotonic()
        await self.db.write(lambda tx: store.add_sender(tx, self.id, this_machine()))
        self._beaten_at = began

    def may_send(self, moment: float) -> bool:
        """Whether a request that starts now will have ended, or been aborted, before another process can take over."""
        return moment < self._beaten_at + 0.75 * self.pace.dead_after_seconds

    def must_abort(self, moment: float) -> bool:
        return moment > self._beaten_at + 0.9 * self.pace.dead_after_seconds

    async def require(self, tx: Tx) -> None:
        """Fail the unit if this process was taken over."""
        if not await store.is_alive(tx, self.id):
            raise TakenOver

    async def beat(self, attempts: int = 0) -> None:
        """Store a heartbeat with the attempts of the last minute, and take over processes that died."""
        began = time.monotonic()
        if not await self.db.write(lambda tx: store.beat(tx, self.id, attempts)):
            raise TakenOver
        self._beaten_at = began
        senders = await store.senders(self.db)
        dead = self._heartbeats.dead({each: state for each, state in senders.items() if each != self.id})
        if dead:
            # Their units may hold their rows, which a takeover deletes.
            await self.db.end_frozen_sessions()
        for each in dead:
            is_over = await self.db.write(partial(self._take_over, sender_id=each, heartbeat=senders[each][0]))
            if is_over and self.folder:
                (self.folder / each).unlink(missing_ok=True)
        running = [each for each in senders if each not in dead]
        # No process is left while this one ends, because its own row is deleted then.
        self.processes = max(len(running), 1)
        self._share = _share(running.index(self.id), len(running)) if self.id in running else 0

    async def claim(self) -> None:
        """Claim a fair share of the shards without an owner."""
        owners = await store.owners(self.db)
        # Read again, because a unit that failed may have been committed.
        self.shards = {shard for shard, owner in enumerate(owners) if owner == self.id}
        missing = self._share - len(self.shards)
        if missing <= 0 or None not in owners:
            return

        async def unit(tx: Tx) -> set[int]:
            await self.require(tx)
            return await store.claim(tx, self.id, missing)

        self.shards |= await self.db.write(unit)

    @property
    def surplus(self) -> set[int]:
        """Shards beyond a fair share, to be released for other processes."""
        return set(sorted(self.shards)[self._share :])

    async def release(self, shards: set[int]) -> None:
        async def unit(tx: Tx) -> None:
            await self.require(tx)
            await store.release(tx, self.id, shards)
            tx.signal(Signal.SHARDS)

        await self.db.write(unit)
        self.shards -= shards

    async def end(self) -> None:
        async def unit(tx: Tx) -> None:
            await store.end(tx, self.id)
            tx.signal(Signal.SHARDS)

        await self.db.write(unit)
        self._unlock()

    async def _take_over(self, tx: Tx, sender_id: str, heartbeat: int) -> bool:
        is_over = await store.end(tx, sender_id, heartbeat)
        if is_over:
            log.warning("process %s has died; its webhooks are sent for by others", sender_id)
            tx.signal(Signal.SHARDS)
        return is_over

    def _unlock(self) -> None:
        if self._lock is not None and self.folder:
            with contextlib.suppress(OSError):
                (self.folder / self.id).unlink()
            os.close(self._lock)
            self._lock = None


def _share(place: int, processes: int) -> int:
    return SHARDS // processes + (1 if place < SHARDS % processes else 0)
