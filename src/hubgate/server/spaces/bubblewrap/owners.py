"""Which running process owns which sandboxes, so that another can end those of a process that has died.

Each process locks a file, in which the folders of its control groups are written. The system unlocks it when the
process dies, however it dies.
"""

import json
import logging
import os
import secrets
from pathlib import Path

from hubgate.server.jobs.heartbeats import is_unlocked, lock
from hubgate.server.spaces.bubblewrap.cgroups import Group

log = logging.getLogger("hubgate.spaces")


class Owner:
    def __init__(self, folder: Path, group: Group) -> None:
        self.id = secrets.token_hex(6)
        self._path = folder / self.id
        # Under another name until it is locked: others would take it for the file of a process that has died.
        hidden = folder / f".{self.id}"
        self._descriptor = lock(hidden)
        folders = {controller: str(path) for controller, path in group.folders.items()}
        os.write(self._descriptor, json.dumps([group.version, folders]).encode())
        hidden.rename(self._path)

    def close(self) -> None:
        # Unless there is a sandbox that did not end, which the sweep of a later process then ends.
        if not _groups_of(self._path):
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


async def end_sandboxes_of_dead_owners(folder: Path, sockets: Path) -> None:
    """End the sandboxes of processes that have died, and delete their sockets."""
    for path in _files(folder):
        if not path.name.startswith(".") and is_unlocked(path):
            try:
                for group in _groups_of(path):
                    await group.end()
                    group.parent.remove_if_empty()
            except TimeoutError:
                # A process that hangs in the kernel must not stop all Spaces. A later sweep tries again.
                log.warning("a sandbox of process %s, which has died, does not end", path.name)
                continue
            for socket in _files(sockets):
                if socket.name.startswith(f"{path.name}-"):
                    socket.unlink(missing_ok=True)
            path.unlink(missing_ok=True)


def _files(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.exists() else []


def _groups_of(path: Path) -> list[Group]:
    try:
        version, folders = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        # Another process has ended them, or the machine lost power before the file was stored.
        return []
    group = Group(version, {controller: Path(folder) for controller, folder in folders.items()})
    entries = [entry for parent in group.paths for entry in _files(parent)]
    return [group.child(name) for name in {each.name for each in entries if each.name.startswith(f"{path.name}.")}]
