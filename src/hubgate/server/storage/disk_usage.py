"""How much space the data folder uses, and how much is left on its file system."""

import os
import shutil
from pathlib import Path
from time import monotonic

from msgspec import Struct

from hubgate.server.jobs.job import checkpoint

# Counting millions of files takes minutes, so it stops; `du` on the server has no limit.
LONGEST_SECONDS = 1.0
# Below this share of free space, an operator should act.
LOW_SHARE = 0.1
# A file uses whole blocks, whose number is in units of 512 bytes on every system (`man 2 stat`).
_BLOCK = 512


class FolderPart(Struct, frozen=True):
    """A file or a folder at the top of the data folder, with the space that it uses."""

    name: str
    size: int


class DiskUsage(Struct, frozen=True):
    # The largest part first.
    parts: list[FolderPart]
    # Whether all files were counted.
    is_complete: bool
    # Of the file system: what this user may still write, and its size.
    free: int
    total: int

    @property
    def used(self) -> int:
        return sum(part.size for part in self.parts)

    @property
    def is_low(self) -> bool:
        return self.free < LOW_SHARE * self.total


def measure(data_dir: Path, seconds: float = LONGEST_SECONDS) -> DiskUsage:
    """Measure the folder in a thread. Files that disappear while they are counted are left out."""
    deadline = monotonic() + seconds
    parts, is_complete = [], True
    with os.scandir(data_dir) as entries:
        for entry in entries:
            size, counted = _size_of(entry, deadline)
            is_complete &= counted
            parts.append(FolderPart(f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name, size))
    volume = shutil.disk_usage(data_dir)
    return DiskUsage(sorted(parts, key=lambda part: -part.size), is_complete, volume.free, volume.total)


def _size_of(entry: "os.DirEntry[str]", deadline: float) -> tuple[int, bool]:
    """The space that a file or a folder uses, and whether all of it was counted before the deadline."""
    size = _size_on_disk(entry)
    waiting = [entry.path] if entry.is_dir(follow_symlinks=False) else []
    while waiting:
        checkpoint()
        if monotonic() > deadline:
            return size, False
        try:
            with os.scandir(waiting.pop()) as inside:
                for each in inside:
                    size += _size_on_disk(each)
                    if each.is_dir(follow_symlinks=False):
                        waiting.append(each.path)
        except OSError:
            continue
    return size, True


def _size_on_disk(entry: "os.DirEntry[str]") -> int:
    try:
        return entry.stat(follow_symlinks=False).st_blocks * _BLOCK
    except OSError:
        return 0
