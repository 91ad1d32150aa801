"""This process among those that run Spaces: its heartbeat, and the end of processes that have died.

A process changes its heartbeat every two seconds. Others end its leases if they see no change for twenty seconds on
their own monotonic clocks, or at once if it ran on this machine and has died.
"""

import contextlib
import logging
import os
import secrets
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hubgate.server.jobs.heartbeats import Heartbeats, lock, this_machine
from hubgate.server.spaces.host import leases_store as store
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.signals import Signal

log = logging.getLogger("hubgate.spaces")

# As a part of the time after which a process counts as dead.
BEAT = 0.1


class TakenOver(Exception):
    """Other processes run the Spaces of this one, which was frozen or without a database."""


@dataclass(eq=False)
class Leases:
    db: Database
    # Where running processes of this machine have lock files.
    folder: Path
    # In seconds, without a change of the heartbeat.
    dead_after: float = 20.0
    id: str = ""
    _lock: int | None = None
    _beaten_at: float = 0.0

    def __post_init__(self) -> None:
        self._heartbeats = Heartbeats(self.dead_after, self.folder)

    async def start(self) -> None:
        """Register this process. Called again after a takeover, under a new id."""
        self._unlock()
        self.id = secrets.token_hex(12)
        self._lock = lock(self.folder / self.id)
        began = time.monotonic()
        await self.db.write(lambda tx: store.add_process(tx, self.id, this_machine()))
        self._beaten_at = began

    @property
    def must_stop(self) -> bool:
        """Whether another process may soon run the Spaces of this one."""
        return time.monotonic() > self._beaten_at + 0.75 * self.dead_after

    async def beat(self) -> None:
        began = time.monotonic()
        if began - self._beaten_at < BEAT * self.dead_after:
            return
        if not await self.db.write(lambda tx: store.beat(tx, self.id)):
            raise TakenOver
        self._beaten_at = began
        others = await store.processes(self.db)
        others.pop(self.id, None)
        for each in self._heartbeats.dead(others):
            is_over = await self.db.write(partial(_end, process=each, heartbeat=others[each][0]))
            if is_over:
                log.warning("process %s has died; others run its Spaces", each)
                (self.folder / each).unlink(missing_ok=True)

    async def end(self) -> None:
        await self.db.write(partial(_end, process=self.id, heartbeat=None))
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            with contextlib.suppress(OSError):
                (self.folder / self.id).unlink()
            os.close(self._lock)
            self._lock = None


async def _end(tx: Tx, process: str, heartbeat: int | None) -> bool:
    is_over = await store.end_process(tx, process, heartbeat)
    if is_over:
        tx.signal(Signal.SPACES)
    return is_over
