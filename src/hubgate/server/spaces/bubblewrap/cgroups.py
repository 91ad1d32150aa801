"""Control groups, version 1 or 2: limits on processor, memory and processes, and the end of everything in a group.

Groups are created below the group that the hub runs in, so that limits of the operator on the hub apply to all Spaces
together with it.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hubgate.server.spaces.runner import Limits, Use

REQUIRED = ("memory", "pids")
PERIOD_US = 100_000
# Of all Spaces together, relative to the hub's 1024 (version 1) and 100 (version 2): the hub comes first. With lower
# ones, apps would not start in time on a busy machine.
SHARES, WEIGHT = 512, 50
# With version 2, a group with limits on its children has no processes itself: the hub's processes move to this one.
OWN_LEAF = "hubgate-own"
# With version 1, buffers of sockets do not count as memory. Those of the whole machine may use about a tenth of it.
SOCKETS_PART = 16
REMOVE_SECONDS = 5.0


class NoGroups(Exception):
    """This machine cannot limit processes and memory. The message says what to do."""


@dataclass(frozen=True)
class Hierarchy:
    """Where this process may create groups: a folder for each controller. With version 2, all are the same folder."""

    version: int
    folders: dict[str, Path]

    def group(self, name: str) -> "Group":
        return Group(self.version, {controller: folder / name for controller, folder in self.folders.items()})


@dataclass(frozen=True)
class Group:
    version: int
    folders: dict[str, Path]

    @property
    def paths(self) -> list[Path]:
        return sorted(set(self.folders.values()))

    @property
    def procs_files(self) -> list[str]:
        return [str(path / "cgroup.procs") for path in self.paths]

    def create(self) -> None:
        for path in self.paths:
            # Not its parents, which would have no limits.
            path.mkdir(exist_ok=True)

    def child(self, name: str) -> "Group":
        return Group(self.version, {controller: folder / name for controller, folder in self.folders.items()})

    @property
    def parent(self) -> "Group":
        return Group(self.version, {controller: folder.parent for controller, folder in self.folders.items()})

    def remove_if_empty(self) -> None:
        for path in self.paths:
            with contextlib.suppress(OSError):
                path.rmdir()

    def limit(self, limits: Limits) -> None:
        """Limit one sandbox. If it has too little memory, all of it is ended."""
        self.limit_memory(limits.memory)
        self._set_if_there("memory", "memory.oom.group", 1)
        self._set("pids", "pids.max", limits.processes)
        quota = max(1000, int(limits.cpu * PERIOD_US))
        if self.version == 2:
            self._set_if_there("cpu", "cpu.max", f"{quota} {PERIOD_US}")
        else:
            self._set_if_there("cpu", "cpu.cfs_period_us", PERIOD_US)
            self._set_if_there("cpu", "cpu.cfs_quota_us", quota)

    def limit_memory(self, size: int) -> None:
        """Limit the group and those below it together, without swap."""
        if self.version == 2:
            self._set("memory", "memory.max", size)
            self._set_if_there("memory", "memory.swap.max", 0)
        else:
            # This is the limit of memory and swap together, which must never be less than that of memory.
            self._set_if_there("memory", "memory.memsw.limit_in_bytes", -1)
            self._set("memory", "memory.limit_in_bytes", size)
            self._set_if_there("memory", "memory.memsw.limit_in_bytes", size)
            self._set_if_there("memory", "memory.kmem.tcp.limit_in_bytes", size // SOCKETS_PART)

    def yield_to_others(self) -> None:
        self._set_if_there("cpu", "cpu.weight", WEIGHT)
        self._set_if_there("cpu", "cpu.shares", SHARES)

    def use(self) -> Use:
        if self.version == 2:
            cpu = self._value("cpu", "cpu.stat", "usage_usec") / 1e6
            memory = self._number("memory", "memory.current")
        else:
            cpu = self._number("cpuacct", "cpuacct.usage") / 1e9
            memory = self._number("memory", "memory.usage_in_bytes")
        return Use(cpu, memory, self._number("pids", "pids.current"))

    def memory_kills(self) -> int:
        """How many processes of the group were killed because it reached its limit of memory."""
        return self._value("memory", "memory.events" if self.version == 2 else "memory.oom_control", "oom_kill")

    def most_memory(self) -> int:
        """The bytes that the group used at most; 0 if the kernel does not count it."""
        return self._number("memory", "memory.peak" if self.version == 2 else "memory.max_usage_in_bytes")

    def refused_forks(self) -> int:
        return self._value("pids", "pids.events", "max")

    def processes(self) -> set[int]:
        found: set[int] = set()
        for path in self.paths:
            with contextlib.suppress(OSError):
                found.update(map(int, (path / "cgroup.procs").read_text().split()))
        return found

    async def end(self) -> None:
        """Kill all processes and remove the group."""
        async with asyncio.timeout(REMOVE_SECONDS):
            while any(path.exists() for path in self.paths):
                self._kill()
                for path in self.paths:
                    with contextlib.suppress(OSError):
                        path.rmdir()
                # Killed processes leave the group only when their memory has been released.
                await asyncio.sleep(0.005)

    def _kill(self) -> None:
        for path in self.paths:
            with contextlib.suppress(OSError):
                if (path / "cgroup.kill").exists():
                    (path / "cgroup.kill").write_text("1")
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def _set(self, controller: str, name: str, value: int | str) -> None:
        (self.folders[controller] / name).write_text(str(value))

    def _set_if_there(self, controller: str, name: str, value: int | str) -> None:
        if controller in self.folders and (self.folders[controller] / name).exists():
            self._set(controller, name, value)

    def _number(self, controller: str, name: str) -> int:
        try:
            return int((self.folders[controller] / name).read_text())
        except (OSError, KeyError, ValueError):
            return 0

    def _value(self, controller: str, name: str, key: str) -> int:
        try:
            lines = (self.folders[controller] / name).read_text().splitlines()
        except (OSError, KeyError):
            return 0
        return sum(int(line.split()[1]) for line in lines if line.split()[0] == key)


def find_hierarchy(mounts: str | None = None, own: str | None = None) -> Hierarchy:
    """The hierarchy of this process; NoGroups if processes and memory cannot be limited. Changes nothing.

    `mounts` and `own` are the contents of /proc/self/mountinfo and /proc/self/cgroup.
    """
    mounts = Path("/proc/self/mountinfo").read_text() if mounts is None else mounts
    own = Path("/proc/self/cgroup").read_text() if own is None else own
    paths = {
        name: path for _, names, path in (line.split(":", 2) for line in own.splitlines()) for name in _each(names)
    }
    first, unified = _mounted(mounts, paths)
    if all(name in first for name in REQUIRED):
        found = Hierarchy(1, first)
    elif unified is not None:
        if unified.name == OWN_LEAF:
            unified = unified.parent
        available = _words(unified / "cgroup.controllers")
        missing = [name for name in REQUIRED if name not in available]
        if missing:
            raise NoGroups(
                f"The hub's control group {unified} cannot limit {' and '.join(missing)}. With systemd, add "
                "Delegate=yes to the hub's unit; in a container, give it a control group of its own."
            )
        found = Hierarchy(2, {name: unified for name in (*REQUIRED, "cpu") if name in available})
    else:
        raise NoGroups("This machine has no control groups for memory and pids. Mount them, or use another machine.")
    for folder in set(found.folders.values()):
        if not os.access(folder, os.W_OK):
            raise NoGroups(
                f"The hub may not create control groups in {folder}. Run it as root, or add Delegate=yes to its unit."
            )
    return found


def prepare(group: Group) -> None:
    """Create the group of all Spaces, and let it limit those below it; NoGroups if that is not possible."""
    if group.version == 1:
        group.create()
    else:
        _create_second(group, group.paths[0])
    group.yield_to_others()


def _create_second(group: Group, folder: Path) -> None:
    """Create a group of version 2. It has controllers only if the group above it passes them on."""
    controllers = " ".join(f"+{name}" for name in group.folders)
    try:
        _leave(folder.parent)
        (folder.parent / "cgroup.subtree_control").write_text(controllers)
        group.create()
        (folder / "cgroup.subtree_control").write_text(controllers)
    except OSError as error:
        raise NoGroups(
            f"The hub's control group {folder.parent} cannot limit Spaces: {error.strerror}. Start the hub in a group "
            "of its own, without other programs."
        ) from error


def _leave(folder: Path) -> None:
    """Move this hub's processes out of a group that is to limit its children."""
    leaf = folder / OWN_LEAF
    members = set(map(int, _words(folder / "cgroup.procs")))
    if not members or not (folder / "cgroup.type").exists():
        # The root of all groups may have processes.
        return
    leaf.mkdir(exist_ok=True)
    for process in members & _family():
        (leaf / "cgroup.procs").write_text(str(process))


def _family() -> set[int]:
    """This process, its parent (the supervisor) and the parent's children."""
    parent = os.getppid()
    family = {os.getpid(), parent}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                    family.add(int(entry.name))
    return family


def _mounted(mounts: str, paths: dict[str, str]) -> tuple[dict[str, Path], Path | None]:
    """The folders of this process for version 1, by controller, and for version 2."""
    first: dict[str, Path] = {}
    unified = None
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        root, point = before.split()[3:5]
        kind, _, options = after.split()[:3]
        if kind == "cgroup2" and "" in paths:
            unified = _below(point, root, paths[""])
        elif kind == "cgroup":
            for name in set(options.split(",")) & set(paths):
                first[name] = _below(point, root, paths[name])
    wanted = (*REQUIRED, "cpu", "cpuacct")
    return {name: first[name] for name in wanted if name in first}, unified


def _below(point: str, root: str, path: str) -> Path:
    inside = path.removeprefix(root) if root != "/" else path
    return Path(point) / inside.strip("/")


def _each(names: str) -> Iterable[str]:
    return names.split(",")


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []
