"""A download on its way: a part beside its destination, named for its content, renamed only when it is right.

The name carries the hash, so what is found there belongs to the same file and is gone on with, whoever began it.
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
    """The git id of a regular file, the SHA-256 of a large one; the hub says which by its length."""
    name = etag.removeprefix("W/").strip('"')
    if not _HASH.match(name):
        raise UnexpectedAnswer("The hub does not say what the file's content must be, so it was not downloaded.")
    return name


def digest_for(name: str, size: int) -> Any:
    if len(name) == 64:
        return hashlib.sha256()
    # Git's own name for a file; that SHA-1 is broken for forgers helps nobody who may not write to the repo.
    return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)


def is_whole(path: Path, name: str, size: int) -> bool:
    """Whether the file is there already."""
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
    """A sink that appends. `done` bytes are on disk and in the hash."""

    def __init__(self, target: Path, name: str, size: int, report: Callable[[int], object] | None) -> None:
        self._target, self._name, self.size = target, name, size
        self._report = report
        self._path, self._file, self._shared = _opened(target, name)
        self._digest, self.done = digest_for(name, size), 0
        while piece := self._file.read(MIB):
            self._digest.update(piece)
            self.done += len(piece)
        if self.done > size:
            self._begin_again()

    @property
    def is_complete(self) -> bool:
        return self.done == self.size

    def begin(self, answer: Response) -> bool:
        if answer.status == 200:
            if self.done:
                self._begin_again()
            return True
        if answer.status != 206:
            return False
        match = _RANGE.match(answer.headers.get("content-range", ""))
        if match is None or int(match[1]) != self.done or int(match[3]) != self.size:
            raise UnexpectedAnswer("The hub sends another part of the file than was asked for.")
        return True

    def write(self, piece: bytes) -> None:
        if self.done + len(piece) > self.size:
            raise UnexpectedAnswer("The hub sends more than the file has. The download was stopped.")
        self._file.write(piece)
        self._digest.update(piece)
        self.done += len(piece)
        if self._report is not None:
            self._report(self.done)

    def finish(self) -> None:
        """Into place, if it is what was announced."""
        if not self.is_complete:
            raise ConnectionLost("The connection ended before the file did.")
        if self._digest.hexdigest() != self._name:
            self.close()
            self._path.unlink(missing_ok=True)
            raise WrongHash(f"{self._target.name} is not what the hub announced. Nothing was kept; try again.")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        try:
            self._path.replace(self._target)
        except FileNotFoundError:
            # Whoever had the part before us has put it into place between our opening and our locking it.
            if not is_whole(self._target, self._name, self.size):
                raise

    def close(self) -> None:
        """What arrived stays, to go on with, unless nobody would find it."""
        with contextlib.suppress(OSError):
            self._file.close()
            if not self._shared:
                self._path.unlink(missing_ok=True)

    def _begin_again(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self._digest, self.done = digest_for(self._name, self.size), 0


def _opened(target: Path, name: str) -> tuple[Path, IO[bytes], bool]:
    target.parent.mkdir(parents=True, exist_ok=True)
    # Names of files have at most 255 bytes; the hash says enough.
    path = target.parent / f".{name[:40]}.part"
    file = path.open("a+b")
    shared = try_lock(file)
    if not shared:
        # Another process downloads the same: this one starts for itself.
        file.close()
        path = target.parent / f".{name[:40]}.{os.getpid()}.{os.urandom(4).hex()}.part"
        file = path.open("a+b")
    file.seek(0)
    return path, file, shared
