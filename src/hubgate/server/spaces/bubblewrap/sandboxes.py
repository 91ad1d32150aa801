"""The sandboxes of this process: their control groups, user ids and folders."""

import hashlib
import os
import shutil
from functools import cached_property
from pathlib import Path

from hubgate.server.spaces.bubblewrap.cgroups import Group, find_hierarchy, prepare
from hubgate.server.spaces.bubblewrap.checks import FIRST_USER, USERS
from hubgate.server.spaces.bubblewrap.owners import Owner
from hubgate.server.spaces.bubblewrap.sandbox import Contents, Sandbox, open_sandbox
from hubgate.server.spaces.runner import Limits, Log


class Sandboxes:
    """Nothing is created before the first sandbox. `memory` limits all Spaces of this machine together."""

    def __init__(self, folder: Path, memory: int | None) -> None:
        self.folder, self._memory = folder, memory
        self._count = 0

    async def open(self, space: str, limits: Limits, name: str, contents: Contents, log: Log) -> Sandbox:
        if not all(path.exists() for path in self._group.paths):
            # Another process, which ran the last sandbox, has stopped and removed it.
            del self._group
        # The owner is known to other processes before it starts anything.
        group = self._group.child(f"{self._owner.id}.{name}")
        return await open_sandbox(self._bubblewrap, contents, group, self.user(space), limits, log)

    def next_name(self) -> str:
        """A name for a sandbox that no other has, on this machine."""
        self._count += 1
        return f"{self._owner.id}-{self._count}"

    def user(self, space: str) -> int | None:
        """The Space's own user id; None if the hub is not root and cannot change to another."""
        if os.geteuid() != 0:
            return None
        return FIRST_USER + int.from_bytes(hashlib.sha256(space.encode()).digest()[:8], "big") % USERS

    def close(self) -> None:
        if "_owner" not in self.__dict__:
            return
        self._owner.close()
        # Another process of this hub may use it.
        self._group.remove_if_empty()

    @cached_property
    def _bubblewrap(self) -> str:
        return shutil.which("bwrap") or "bwrap"

    @cached_property
    def _group(self) -> Group:
        name = hashlib.sha256(os.fsencode(self.folder.absolute())).hexdigest()[:12]
        group = find_hierarchy().group(f"hubgate-{name}")
        prepare(group)
        if self._memory is not None:
            group.limit_memory(self._memory)
        return group

    @cached_property
    def _owner(self) -> Owner:
        return Owner(self.folder / "owners", self._group)
