"""A fair lock between processes that write one SQLite file.

SQLite's own busy timeout polls, so a saturating writer starves its neighbour entirely. Here a writer holds an
exclusive flock on one file from BEGIN to COMMIT. Whoever has to wait also holds a shared flock on a second file, and
a writer that sees one there pauses before its next turn: long enough for the waiter, who sleeps in the kernel, to be
handed the lock.

A flock belongs to an open file and dies with its process: a killed writer blocks no one.
"""

import contextlib
import fcntl
import os
from pathlib import Path

COURTESY_PAUSE = 0.0005


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

    def acquire(self) -> None:
        """Blocks; call it from a thread."""
        fcntl.flock(self._queue, fcntl.LOCK_SH)
        try:
            fcntl.flock(self._turn, fcntl.LOCK_EX)
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
