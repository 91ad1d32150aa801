"""Partial downloads: a file next to the destination, which is renamed when its content is verified.

The hash is part of the file's name, so an existing partial file has the same content and any process can resume it.
"""

import contextlib
import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from hubgate.client.errors import ConnectionLost, UnexpectedAnswer, WrongHash
from hubgate.client.store import try_lock
from hubgate.client.wire import MIB, Response

_HASH = re.compile(r"[0-9a-f]{40}\Z|[0-9a-f]{64}\Z")
_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})\Z")


def hash_from(etag: str) -> str:
    """The hash in an ETag: the git id of a regular file or the SHA-256 of a large one, distinguished by length."""
    name = etag.removeprefix("W/").strip('"')
    if not _HASH.match(name):
        raise UnexpectedAnswer("The hub did not send the file's hash, so the file was not downloaded.")
    return name


def digest_for(name: str, size: int) -> Any:
    if len(name) == 64:
        return hashlib.sha256()
    # The git blob id. SHA-1 collisions help only attackers who can write to the repo.
    return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)


def is_whole(path: Path, name: str, size: int) -> bool:
    """Whether the file already exists with the expected content."""
    try:
        if path.stat().st_size != size:
            return False
        digest = digest_for(name, size)
        with path.open("rb") as file:
            while piece := file.read(MIB):
                digest.update(piece)
    except OSError:
        return False
    return bool(digest.hexdigest() == name)


class Part:
    """A sink that appends to a partial file. `done` bytes are written and hashed."""

    def __init__(self, target: Path, name: str, size: int, report: Callable[[int], object] | None) -> None:
        self._target, self._name, self.size = target, name, size
        self._report = report
        self._path, self._file, self._shared = _open_part(target, name)
        self._digest, self.done = digest_for(name, size), 0
        while piece := self._file.read(MIB):
            self._digest.update(piece)
            self.done += len(piece)
        if self.done > size:
            self._restart()

    @property
    def is_complete(self) -> bool:
        return self.done == self.size

    def begin(self, answer: Response) -> bool:
        if answer.status == 200:
            if self.done:
                self._restart()
            return True
        if answer.status != 206:
            return False
        match = _RANGE.match(answer.headers.get("content-range", ""))
        if match is None or int(match[1]) != self.done or int(match[3]) != self.size:
            raise UnexpectedAnswer("The hub sent another part of the file than was requested.")
        return True

    def write(self, piece: bytes) -> None:
        if self.done + len(piece) > self.size:
            raise UnexpectedAnswer("The hub sent more bytes than the file has. The download was stopped.")
        self._file.write(piece)
        self._digest.update(piece)
        self.done += len(piece)
        if self._report is not None:
            self._report(self.done)

    def finish(self) -> None:
        """Verify the hash and move the file into place."""
        if not self.is_complete:
            raise ConnectionLost("The connection was lost before the download was complete.")
        if self._digest.hexdigest() != self._name:
            self.close()
            self._path.unlink(missing_ok=True)
            raise WrongHash(f"{self._target.name} does not match the hub's hash and was deleted. Try again.")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        try:
            self._path.replace(self._target)
        except FileNotFoundError:
            # Another process moved the part into place after this one opened it and before it had the lock.
            if not is_whole(self._target, self._name, self.size):
                raise

    def close(self) -> None:
        """Close the partial file, and retain it for a later resume if its name is predictable."""
        with contextlib.suppress(OSError):
            self._file.close()
            if not self._shared:
                self._path.unlink(missing_ok=True)

    def _restart(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self._digest, self.done = digest_for(self._name, self.size), 0


def _open_part(target: Path, name: str) -> tuple[Path, IO[bytes], bool]:
    target.parent.mkdir(parents=True, exist_ok=True)
    # File names are limited to 255 bytes, so only the hash is used.
    path = target.parent / f".{name[:40]}.part"
    file = path.open("a+b")
    shared = try_lock(file)
    if not shared:
        # Another process is downloading the same content: use a separate file.
        file.close()
        path = target.parent / f".{name[:40]}.{os.getpid()}.{os.urandom(4).hex()}.part"
        file = path.open("a+b")
    file.seek(0)
    return path, file, shared
