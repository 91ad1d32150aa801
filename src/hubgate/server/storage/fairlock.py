"""A fair lock between processes that write to the same SQLite file.

SQLite's busy timeout polls, so a saturating writer can starve all others. Here a writer locks one file exclusively
(flock) from BEGIN to COMMIT, and a waiting writer locks a second file in shared mode. A writer that detects the shared
lock pauses before its next turn, for longer than a waiter sleeps between two tries.

The system releases a flock when its process dies: a killed writer blocks nobody, and a stopped one blocks waiters only
until they time out.
"""

import contextlib
import fcntl
import os
import time
from pathlib import Path

# Event loops round up to a millisecond, so a shorter pause is not possible.
COURTESY_PAUSE = 0.001
_POLL_SECONDS = 0.00025


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
        """Wait for the lock, or raise TimeoutError. Blocks: call it from a thread."""
        give_up_at = time.monotonic() + seconds
        fcntl.flock(self._queue, fcntl.LOCK_SH)
        try:
            while not self.try_acquire():
                if time.monotonic() > give_up_at:
                    raise TimeoutError("another process has locked the database")
                time.sleep(_POLL_SECONDS)
        finally:
            fcntl.flock(self._queue, fcntl.LOCK_UN)

    def release(self) -> None:
        fcntl.flock(self._turn, fcntl.LOCK_UN)

    def has_waiters(self) -> bool:
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
