"""This process among those that run Spaces: its heartbeat, and the end of processes that have died.

A process changes its heartbeat every two seconds. Others end its leases if they see no change for twenty seconds on
their own monotonic clocks, or at once if it ran on this machine and has died.
"""

import contextlib
import logging
import os
import secrets
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hubgate.server.jobs.process_locks import is_unlocked, lock_file, machine
from hubgate.server.spaces.host import leases_store as store
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.signals import Signal

log = logging.getLogger("hubgate.spaces")

BEAT_SECONDS = 2.0
DEAD_AFTER_SECONDS = 20.0


class TakenOver(Exception):
    """Other processes run the Spaces of this one, which was frozen or without a database."""


@dataclass(eq=False)
class Leases:
    db: Database
    # Where running processes of this machine have lock files.
    folder: Path
    id: str = ""
    _lock: int | None = None
    _beaten_at: float = 0.0
    # Of other processes: the last heartbeat, and when it was first seen.
    _seen: dict[str, tuple[int, float]] = field(default_factory=dict)

    async def start(self) -> None:
        """Register this process. Called again after a takeover, under a new id."""
        self._unlock()
        self.id = secrets.token_hex(12)
        self._lock = lock_file(self.folder / self.id)
        began = time.monotonic()
        await self.db.write(lambda tx: store.add_process(tx, self.id, machine()))
        self._beaten_at = began

    @property
    def must_stop(self) -> bool:
        """Whether another process may soon run the Spaces of this one."""
        return time.monotonic() > self._beaten_at + 0.75 * DEAD_AFTER_SECONDS

    async def beat(self) -> None:
        began = time.monotonic()
        if began - self._beaten_at < BEAT_SECONDS:
            return
        if not await self.db.write(lambda tx: store.beat(tx, self.id)):
            raise TakenOver
        self._beaten_at = began
        others = await store.processes(self.db)
        others.pop(self.id, None)
        for each, (heartbeat, on_machine) in others.items():
            if self._is_dead(each, heartbeat, on_machine):
                log.warning("process %s has died; others run its Spaces", each)
                await self.db.write(partial(_end, process=each, heartbeat=heartbeat))
                (self.folder / each).unlink(missing_ok=True)
        self._seen = {each: seen for each, seen in self._seen.items() if each in others}

    async def end(self) -> None:
        await self.db.write(partial(_end, process=self.id, heartbeat=None))
        self._unlock()

    def _is_dead(self, process: str, heartbeat: int, on_machine: str) -> bool:
        if on_machine == machine() and is_unlocked(self.folder / process):
            return True
        now = time.monotonic()
        seen, since = self._seen.get(process, (None, now))
        if seen != heartbeat:
            since = now
        self._seen[process] = heartbeat, since
        return now - since >= DEAD_AFTER_SECONDS

    def _unlock(self) -> None:
        if self._lock is not None:
            with contextlib.suppress(OSError):
                (self.folder / self.id).unlink()
            os.close(self._lock)
            self._lock = None


async def _end(tx: Tx, process: str, heartbeat: int | None) -> None:
    if await store.end_process(tx, process, heartbeat):
        tx.signal(Signal.SPACES)
