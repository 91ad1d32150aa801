"""The installed packages of all Spaces: where they are, which are in use, and how much room they take together.

An environment is a folder `{Space}/{key}` with `packages`, which apps mount read-only, and `cost`, its size. An app
that runs has a shared lock on the folder. The lock ends with the process that has it; what is locked is not deleted.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from hubgate.server.spaces.runner import MIB, BuildFailed

# Environments of one Space: the app that runs uses one of them, and the one that replaces it another.
RETAINED = 3
# An environment that was used within this time is not deleted to make room: its app may be about to start.
RECENT_SECONDS = 600.0
# A file counts as at least so many bytes, because file systems also run out of files.
FILE_BYTES = 16 * 1024

_UNFINISHED, _FORGOTTEN = "unfinished-", "forgotten-"


class Installed:
    def __init__(self, folder: Path, max_bytes: int | None) -> None:
        self._folder, self._max_bytes = folder, max_bytes

    def find(self, space: str, key: str) -> bool:
        """Whether an environment is there. It counts as used now."""
        path = self._of(space) / key
        with contextlib.suppress(FileNotFoundError):
            os.utime(path)
            return True
        return False

    def packages(self, space: str, key: str) -> Path:
        return self._of(space) / key / "packages"

    def lock(self, space: str, key: str) -> int:
        """A descriptor with a lock on an environment that is in use."""
        # Without waiting, because the caller is the event loop: one that is being deleted now is of no use.
        return _lock(self._of(space) / key, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def make_room(self, size: int) -> None:
        """Delete what was used least recently until `size` bytes fit; BuildFailed if they do not."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if shutil.disk_usage(self._folder).free < 3 * size:
            # For the archive, and for what is unpacked from it.
            raise BuildFailed("The disk of this hub is almost full. Its operator can free some of it.")
        if self._max_bytes is None:
            return
        # One at a time: a second one would count what the first is deleting, and delete more or fail.
        descriptor = _lock(self._folder, fcntl.LOCK_EX)
        try:
            too_many = self._delete_until(size, max(self._max_bytes, size))
        finally:
            os.close(descriptor)
        if too_many > 0:
            raise BuildFailed(
                f"The packages of all Spaces together have reached {self._max_bytes // MIB:,} MiB. Try again when "
                "other Spaces sleep, or ask the operator of this hub for more room."
            )

    def _delete_until(self, size: int, limit: int) -> int:
        """The bytes that are too many for `size` more to fit; not more than 0 if they do."""
        found = sorted(self._all(), key=_used_at)
        too_many = sum(map(_cost, found)) + size - limit
        for path in found:
            if too_many <= 0:
                break
            cost = _cost(path)
            if _used_at(path) < time.time() - RECENT_SECONDS and _delete_unless_locked(path):
                too_many -= cost
        return too_many

    def unfinished(self, space: str) -> Path:
        """A new folder for an environment that is being installed, with an empty folder for its packages."""
        self._of(space).mkdir(mode=0o700, parents=True, exist_ok=True)
        path = Path(tempfile.mkdtemp(dir=self._of(space), prefix=_UNFINISHED))
        (path / "packages").mkdir()
        return path

    def finish(self, unfinished: Path, key: str) -> None:
        """Keep an environment, and delete those that its Space has not used recently."""
        # Locked: the build may have been cancelled, and the next one deletes what is unfinished.
        descriptor = _lock(unfinished, fcntl.LOCK_SH | fcntl.LOCK_NB)
        try:
            (unfinished / "cost").write_text(str(_measure(unfinished)))
            with contextlib.suppress(OSError):
                # Not empty: another process has installed the same.
                unfinished.rename(unfinished.parent / key)
        finally:
            delete(unfinished)
            os.close(descriptor)
        for path in self._finished(unfinished.parent)[RETAINED:]:
            _delete_unless_locked(path)

    def clean(self, space: str) -> None:
        """Delete what a Space has forgotten, and what earlier processes left unfinished."""
        for path in _entries(self._of(space)):
            if path.name.startswith((_UNFINISHED, _FORGOTTEN)):
                _delete_unless_locked(path)

    def forget(self, space: str) -> None:
        """Let a Space install everything again. An app that runs keeps its files."""
        for path in self._finished(self._of(space)):
            path.rename(path.with_name(f"{_FORGOTTEN}{path.name}-{time.time_ns()}"))
        self.clean(space)

    def retain(self, spaces: Collection[str]) -> None:
        """Delete what other Spaces have installed, which were deleted."""
        retained = {self._of(space) for space in spaces}
        for folder in _entries(self._folder):
            if folder in retained:
                continue
            for path in _entries(folder):
                # One that is installed now may be of a Space that was created since.
                if _used_at(path) < time.time() - RECENT_SECONDS:
                    _delete_unless_locked(path)
            with contextlib.suppress(OSError):
                folder.rmdir()

    def _of(self, space: str) -> Path:
        return self._folder / hashlib.sha256(space.encode()).hexdigest()[:32]

    def _all(self) -> Iterator[Path]:
        for folder in _entries(self._folder):
            yield from _entries(folder)

    def _finished(self, folder: Path) -> list[Path]:
        """The environments of a Space, the one that was used last first."""
        finished = [path for path in _entries(folder) if not path.name.startswith((_UNFINISHED, _FORGOTTEN))]
        return sorted(finished, key=_used_at, reverse=True)


def delete(folder: Path) -> None:
    """Delete a folder that a Space has filled. With `rm`: its folders may be nested deeper than Python can recurse."""
    subprocess.run(["rm", "-rf", "--one-file-system", "--", folder], check=False, capture_output=True)


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _lock(path: Path, operation: int) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, operation)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _delete_unless_locked(path: Path) -> bool:
    try:
        descriptor = _lock(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except FileNotFoundError:
        # Another process has deleted or renamed it.
        return True
    try:
        delete(path)
    finally:
        os.close(descriptor)
    return True


def _used_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _measure(folder: Path) -> int:
    """The bytes that a folder takes, or those for its files if there are many small ones."""
    used, files = (
        int(subprocess.run(["du", "-s", option, "--", folder], check=True, capture_output=True).stdout.split()[0])
        for option in ("--block-size=1", "--inodes")
    )
    return max(used, files * FILE_BYTES)


def _cost(path: Path) -> int:
    """The size of an environment; 0 while it is installed."""
    try:
        return int((path / "cost").read_text())
    except (OSError, ValueError):
        return 0
