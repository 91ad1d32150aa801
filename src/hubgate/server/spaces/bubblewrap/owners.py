"""Which running process owns which sandboxes, so that another can end those of a process that has died.

Each process locks a file, in which the folders of its control groups are written. The system unlocks it when the
process dies, however it dies.
"""

import contextlib
import fcntl
import json
import os
import secrets
from pathlib import Path

from hubgate.server.spaces.bubblewrap.cgroups import Group


class Owner:
    def __init__(self, folder: Path, group: Group) -> None:
        self.id = secrets.token_hex(6)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = folder / self.id
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, json.dumps([group.version, {k: str(v) for k, v in group.folders.items()}]).encode())
        self._descriptor = descriptor

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


async def end_of_dead_owners(folder: Path) -> None:
    """End the sandboxes of processes that have died."""
    for path in _files(folder):
        with contextlib.suppress(FileNotFoundError, BlockingIOError):
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for group in _groups_of(path):
                    await group.end()
                    group.parent.remove_if_empty()
                path.unlink(missing_ok=True)
            finally:
                os.close(descriptor)


def _files(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.exists() else []


def _groups_of(path: Path) -> list[Group]:
    try:
        version, folders = json.loads(path.read_text())
    except ValueError:
        # It died before it wrote, and so before it started anything.
        return []
    group = Group(version, {controller: Path(folder) for controller, folder in folders.items()})
    entries = [entry for parent in group.paths for entry in _files(parent)]
    return [group.child(name) for name in {each.name for each in entries if each.name.startswith(f"{path.name}.")}]
