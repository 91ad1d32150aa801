"""The address of a running hub, in a file of its data folder, for commands that print links.

`hubgate serve` locks the file while it runs. A file without a lock is left from a hub that was killed, and is ignored.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

NAME = "address"


@contextlib.contextmanager
def published(data_dir: Path, base_url: str) -> Iterator[None]:
    """Publish the address until the hub stops. Only the first of several hubs in a folder publishes its address."""
    path = data_dir / NAME
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        # Links of commands are less important than the hub.
        yield
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield
            return
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, base_url.encode(), 0)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def running_address(data_dir: Path) -> str | None:
    """The base URL of the hub that runs in this data folder, on this machine."""
    try:
        with (data_dir / NAME).open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read(2048).decode(errors="replace") or None
    except OSError:
        return None
    return None
