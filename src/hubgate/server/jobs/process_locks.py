"""Lock files of running processes: others of the same machine see at once that a process has died."""

import fcntl
import os
import socket
from pathlib import Path


def machine() -> str:
    """This machine and its current boot. A lock file says nothing about the processes of other machines."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return f"{socket.gethostname()} {boot.read_text().strip() if boot.exists() else ''}"


def lock_file(path: Path) -> int:
    """Create and lock a file; the descriptor, which unlocks the file when it is closed or the process dies."""
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
