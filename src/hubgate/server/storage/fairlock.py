"""A fair lock between processes that write one SQLite file.

SQLite's own busy timeout polls, so a saturating writer starves its neighbour entirely. Here a writer holds an
exclusive flock on one file from BEGIN to COMMIT. Whoever has to wait also holds a shared flock on a second file, and
a writer that sees one there pauses before its next turn, for longer than a waiter sleeps between two tries.

A flock belongs to an open file and dies with its process: a killed writer blocks no one, and a stopped one only for as
long as the waiters' patience.
"""

import contextlib
import fcntl
import os
import time
from pathlib import Path

# Event loops round up to a millisecond, so the pause is at least that long.
COURTESY_PAUSE = 0.001
_BETWEEN_TRIES = 0.00025


class FairLock:
    def __init__(self, database: Path) -> None:
        self._turn = _open(database.with_name(database.name + "-turn"))
        self._queue = _open(database.with_name(database.name + "-queue"))

    def try_acquire(self) -> bool:
        try:
            fcntl.flock(self._turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def acquire(self, seconds: float) -> None:
        """Wait for the turn, at most so long; TimeoutError after that. Blocks: call it from a thread."""
        give_up_at = time.monotonic() + seconds
        fcntl.flock(self._queue, fcntl.LOCK_SH)
        try:
            while not self.try_acquire():
                if time.monotonic() > give_up_at:
                    raise TimeoutError("another process holds the database")
                time.sleep(_BETWEEN_TRIES)
        finally:
            fcntl.flock(self._queue, fcntl.LOCK_UN)

    def release(self) -> None:
        fcntl.flock(self._turn, fcntl.LOCK_UN)

    def others_wait(self) -> bool:
        try:
            fcntl.flock(self._queue, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._queue, fcntl.LOCK_UN)
        return False

    def close(self) -> None:
        for descriptor in (self._turn, self._queue):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
