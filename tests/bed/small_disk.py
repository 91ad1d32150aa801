"""A real disk that fills up: a small tmpfs in a mount namespace of its own, which needs bubblewrap but not root."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hubgate.server.spaces.runner import MIB


@dataclass(frozen=True)
class SmallDisk:
    folder: Path

    def leave(self, size: int) -> None:
        """Fill the disk, but for `size` bytes."""
        filling = self.folder / "filling"
        filling.unlink(missing_ok=True)
        found = os.statvfs(self.folder)
        with filling.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, found.f_bavail * found.f_frsize - size))

    def clear(self) -> None:
        (self.folder / "filling").unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, size: int = 16 * MIB) -> Iterator[SmallDisk]:
    """Move a folder to a disk of this size."""
    mounted, before = (folder.with_name(f"{folder.name}-{what}") for what in ("disk", "before"))
    mounted.mkdir(parents=True)
    if folder.exists():
        folder.rename(before)
    # The disk exists as long as a process is in its namespace, and is reached through that process.
    sandbox = ["bwrap", "--dev-bind", "/", "/", "--size", str(size), "--tmpfs", str(mounted), "--die-with-parent"]
    holder = subprocess.Popen(
        [*sandbox, "sh", "-c", "echo $$; exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        try:
            pid = int(holder.stdout.readline())
            folder.symlink_to(f"/proc/{pid}/root{mounted}", target_is_directory=True)
            if before.exists():
                shutil.copytree(before, folder, dirs_exist_ok=True)
            yield SmallDisk(folder)
        finally:
            holder.stdin.close()
