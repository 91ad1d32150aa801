"""Tells which processes of a kind have died. A process that was killed leaves its row in the database.

Each process has a lock file, so that others on its machine see at once that it has died. For processes of other
machines, a heartbeat that does not change is measured on the monotonic clock of the observer.
"""

import fcntl
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(eq=False)
class Heartbeats:
    dead_after_seconds: float
    # Where running processes of this machine have lock files; None without them.
    folder: Path | None = None
    # The last heartbeat, and when it was first seen.
    _seen: dict[str, tuple[int, float]] = field(default_factory=dict)

    def dead(self, processes: Mapping[str, tuple[int, str]]) -> set[str]:
        """The ids of processes that have died, of those with these heartbeats and machines."""
        now = time.monotonic()
        before, self._seen = self._seen, {}
        found = set()
        for process_id, (heartbeat, machine) in processes.items():
            seen, since = before.get(process_id, (None, now))
            since = since if seen == heartbeat else now
            self._seen[process_id] = heartbeat, since
            if now - since >= self.dead_after_seconds or self._is_unlocked(process_id, machine):
                found.add(process_id)
        return found

    def _is_unlocked(self, process_id: str, machine: str) -> bool:
        return self.folder is not None and machine == this_machine() and is_unlocked(self.folder / process_id)


def this_machine() -> str:
    """This machine and its current boot. A lock file says nothing about the processes of other machines."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return f"{socket.gethostname()} {boot.read_text().strip() if boot.exists() else ''}"


def lock(path: Path) -> int:
    """Lock the file of a process as long as the returned descriptor is open."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def is_unlocked(path: Path) -> bool:
    """Whether the process that locked the file has died. The system unlocks the files of a dead process."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
