"""Multipart uploads of large files: parts are stored until all are received, then joined and checked."""

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from msgspec import Struct

from hubgate.server.errors import Unprocessable
from hubgate.server.hub.git.threads import in_long_thread, in_thread
from hubgate.server.hub.lfs.files import LargeFiles

# Each part has a URL, so a file of a terabyte has larger parts rather than more parts.
MAX_PARTS = 256
_CHUNK = 1024 * 1024
_FINGERPRINT = re.compile(r"[0-9a-f]{32}\Z")


class PartLayout(Struct, frozen=True):
    """The division of a file of `size` bytes into parts of at least `min_part_size` bytes."""

    size: int
    min_part_size: int

    @property
    def part_size(self) -> int:
        """The size of every part but the last."""
        return max(self.min_part_size, -(-self.size // MAX_PARTS))

    @property
    def count(self) -> int:
        return -(-self.size // self.part_size)

    def length_of(self, number: int) -> int:
        return min(self.part_size, self.size - (number - 1) * self.part_size)


def is_fingerprint(text: str) -> bool:
    return _FINGERPRINT.match(text) is not None


async def receive_part(files: LargeFiles, upload: str, number: int, length: int, chunks: AsyncIterator[bytes]) -> str:
    """Receive a part and return its fingerprint. The same part sent again replaces the earlier upload."""
    folder = _folder(files, upload)
    await in_thread(lambda: folder.mkdir(parents=True, exist_ok=True))
    temporary, digest, count = files.temporary(), hashlib.sha256(), 0
    try:
        with temporary.open("wb") as file:
            async for chunk in chunks:
                count += len(chunk)
                if count > length:
                    break
                digest.update(chunk)
                await in_thread(file.write, chunk)
        if count != length:
            raise Unprocessable(f"Part {number} must have {length} bytes.")
        fingerprint = digest.hexdigest()[:32]
        await in_thread(temporary.replace, folder / f"{number:05d}-{fingerprint}")
    finally:
        temporary.unlink(missing_ok=True)
    return fingerprint


async def complete(files: LargeFiles, upload: str, oid: str, layout: PartLayout, fingerprints: Sequence[str]) -> None:
    if len(fingerprints) != layout.count:
        raise Unprocessable(f"This file must have {layout.count} parts.")
    temporary = await in_long_thread(_join, files, upload, oid, layout.size, fingerprints)
    await files.add(temporary, oid)
    await in_long_thread(shutil.rmtree, _folder(files, upload), ignore_errors=True)


def _join(files: LargeFiles, upload: str, oid: str, size: int, fingerprints: Sequence[str]) -> Path:
    """Join the parts in a temporary file, and check it."""
    temporary = files.temporary()
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(temporary.unlink, missing_ok=True)
        digest = _append_parts(_folder(files, upload), fingerprints, temporary)
        if digest != oid or temporary.stat().st_size != size:
            raise Unprocessable(f"The received file is not the announced one: its SHA-256 is {digest}.")
        on_failure.pop_all()
    return temporary


def _append_parts(folder: Path, fingerprints: Sequence[str], target: Path) -> str:
    digest = hashlib.sha256()
    with target.open("wb") as whole:
        for number, fingerprint in enumerate(fingerprints, 1):
            try:
                with (folder / f"{number:05d}-{fingerprint}").open("rb") as part:
                    while chunk := part.read(_CHUNK):
                        digest.update(chunk)
                        whole.write(chunk)
            except FileNotFoundError:
                raise Unprocessable(f"Part {number} was not received.") from None
        whole.flush()
        os.fsync(whole.fileno())
    return digest.hexdigest()


def _folder(files: LargeFiles, upload: str) -> Path:
    return files.root / "parts" / upload
