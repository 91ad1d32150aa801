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

from hubgate.client.errors import ConnectionLost, UnexpectedResponse, WrongHash
from hubgate.client.store import try_lock
from hubgate.client.wire import MIB, Response

_HASH = re.compile(r"[0-9a-f]{40}\Z|[0-9a-f]{64}\Z")
_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})\Z")


def hash_from(etag: str) -> str:
    """The hash in an ETag: the git id of a regular file or the SHA-256 of a large one, distinguished by length."""
    found = etag.removeprefix("W/").strip('"')
    if not _HASH.match(found):
        raise UnexpectedResponse("The hub did not send the file's hash, so the file was not downloaded.")
    return found


def digest_for(expected_hash: str, size: int) -> Any:
    """A new digest of the algorithm that the length of the hash implies."""
    if len(expected_hash) == 64:
        return hashlib.sha256()
    # The git blob id. SHA-1 collisions help only attackers who can write to the repo.
    return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)


def has_content(path: Path, expected_hash: str, size: int) -> bool:
    """Whether the file already exists with the expected content."""
    try:
        if path.stat().st_size != size:
            return False
        digest = digest_for(expected_hash, size)
        with path.open("rb") as file:
            while piece := file.read(MIB):
                digest.update(piece)
    except OSError:
        return False
    return bool(digest.hexdigest() == expected_hash)


class PartialFile:
    """A sink that appends to a partial file. `done` bytes are written and hashed."""

    def __init__(self, target: Path, expected_hash: str, size: int, report: Callable[[int], object] | None) -> None:
        self._target, self._expected_hash, self.size = target, expected_hash, size
        self._report = report
        self._path, self._file, self._is_resumable = _open(target, expected_hash)
        self._digest, self.done = digest_for(expected_hash, size), 0
        while piece := self._file.read(MIB):
            self._digest.update(piece)
            self.done += len(piece)
        if self.done > size:
            self._restart()

    @property
    def is_complete(self) -> bool:
        return self.done == self.size

    def begin(self, response: Response) -> bool:
        if response.status == 200:
            if self.done:
                self._restart()
            return True
        if response.status != 206:
            return False
        match = _RANGE.match(response.headers.get("content-range", ""))
        if match is None or int(match[1]) != self.done or int(match[3]) != self.size:
            raise UnexpectedResponse("The hub sent a different part of the file than was requested.")
        return True

    def write(self, piece: bytes) -> None:
        if self.done + len(piece) > self.size:
            raise UnexpectedResponse("The hub sent more bytes than the file has. The download was stopped.")
        self._file.write(piece)
        self._digest.update(piece)
        self.done += len(piece)
        if self._report is not None:
            self._report(self.done)

    def finish(self) -> None:
        """Verify the hash and move the file into place."""
        if not self.is_complete:
            raise ConnectionLost("The connection was lost before the download was complete.")
        if self._digest.hexdigest() != self._expected_hash:
            self.close()
            self._path.unlink(missing_ok=True)
            raise WrongHash(f"{self._target.name} does not match the hub's hash and was deleted. Try again.")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        try:
            self._path.replace(self._target)
        except FileNotFoundError:
            # Another process moved the partial file into place between our open and our lock.
            if not has_content(self._target, self._expected_hash, self.size):
                raise

    def close(self) -> None:
        """Close the partial file, and delete it unless a later process can resume it."""
        with contextlib.suppress(OSError):
            self._file.close()
            if not self._is_resumable:
                self._path.unlink(missing_ok=True)

    def _restart(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self._digest, self.done = digest_for(self._expected_hash, self.size), 0


def _open(target: Path, expected_hash: str) -> tuple[Path, IO[bytes], bool]:
    """Open the partial file. Returns its path, the open file, and whether a later process can resume it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    # File names are limited to 255 bytes, so only the hash is used.
    path = target.parent / f".{expected_hash[:40]}.part"
    file = path.open("a+b")
    is_resumable = try_lock(file)
    if not is_resumable:
        # Another process is downloading the same content: use a separate file.
        file.close()
        path = target.parent / f".{expected_hash[:40]}.{os.getpid()}.{os.urandom(4).hex()}.part"
        file = path.open("a+b")
    file.seek(0)
    return path, file, is_resumable
