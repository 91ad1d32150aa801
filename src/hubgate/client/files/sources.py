"""Local files for an upload, read in pieces. An upload fails if its file changes while it is read."""

import hashlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hubgate.client.errors import FileChanged
from hubgate.client.wire import MIB, Upload

PIECE_SIZE = MIB
_SAMPLE_SIZE = 512

Progress = Callable[[str, int, int], object]


@dataclass(frozen=True)
class Source:
    """A file to upload. `path` is its path in the repo."""

    path: str
    content: Path | bytes
    size: int

    def open(self) -> BinaryIO:
        return io.BytesIO(self.content) if isinstance(self.content, bytes) else self.content.open("rb")

    def sample(self) -> bytes:
        with self.open() as file:
            return file.read(_SAMPLE_SIZE)

    def pieces(self, start: int = 0, length: int | None = None, step: int = PIECE_SIZE) -> Iterator[bytes]:
        """Yield exactly `length` bytes or raise FileChanged, because the request's Content-Length is fixed."""
        left = self.size - start if length is None else length
        reaches_end = start + left == self.size
        with self.open() as file:
            file.seek(start)
            while left:
                piece = file.read(min(step, left))
                if not piece:
                    raise FileChanged(f"{self.path} became shorter while it was being sent.")
                left -= len(piece)
                yield piece
            if reaches_end and file.read(1):
                raise FileChanged(f"{self.path} became longer while it was being sent.")

    def sha256(self) -> str:
        digest = hashlib.sha256()
        for piece in self.pieces():
            digest.update(piece)
        return digest.hexdigest()

    def git_id(self) -> str:
        """The git blob id, which the hub uses to detect unchanged files."""
        digest = hashlib.sha1(b"blob %d\0" % self.size, usedforsecurity=False)
        for piece in self.pieces():
            digest.update(piece)
        return digest.hexdigest()

    def upload(self, start: int, length: int, report: Callable[[int], object] | None) -> Upload:
        """The request body for a range of the file. `report` receives the position in the file."""

        def pieces() -> Iterator[bytes]:
            done = start
            for piece in self.pieces(start, length):
                yield piece
                done += len(piece)
                if report is not None:
                    report(done)

        return Upload(length, pieces)


def source_for(path: str, content: Path | bytes) -> Source:
    if isinstance(content, bytes):
        return Source(path, content, len(content))
    return Source(path, content, content.stat().st_size)
