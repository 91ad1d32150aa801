"""Large files on disk, named by the SHA-256 of their content. A file gets its name only after its size and hash were
checked, so a named file is complete.
"""

import hashlib
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from msgspec import Struct

from hubgate.server.errors import Unprocessable
from hubgate.server.hub.git.fsync import sync_path
from hubgate.server.hub.git.threads import in_thread


class LargeFiles(Struct, frozen=True):
    root: Path

    def at(self, oid: str) -> Path:
        return self.root / oid[:2] / oid[2:4] / oid

    def has(self, oid: str, size: int) -> bool:
        try:
            return self.at(oid).stat().st_size == size
        except FileNotFoundError:
            return False

    @property
    def deletion_candidates(self) -> Path:
        """The folder of files that may be deleted (`repos/housekeeping.py`)."""
        return self.root / "going"

    def all(self) -> Iterator[Path]:
        yield from self.root.glob("??/??/*")

    def temporary(self) -> Path:
        """The path of a new temporary file on the same file system."""
        folder = self.root / "incoming"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / secrets.token_hex(16)

    async def add(self, temporary: Path, oid: str) -> None:
        """Move a complete, checked file to its final name."""
        await in_thread(self.add_blocking, temporary, oid)

    def add_blocking(self, temporary: Path, oid: str) -> None:
        path = self.at(oid)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Concurrent uploads of the same file result in the same bytes under the same name.
        temporary.replace(path)
        sync_path(path.parent)

    async def receive(self, parts: AsyncIterator[bytes], oid: str, size: int) -> None:
        """Receive a file and store it if size and hash are as announced."""
        temporary = self.temporary()
        try:
            with temporary.open("wb") as file:
                digest, count = hashlib.sha256(), 0
                async for part in parts:
                    count += len(part)
                    if count > size:
                        break
                    await in_thread(_append, file.fileno(), digest, part)
                await in_thread(os.fsync, file.fileno())
            if count != size:
                raise Unprocessable(
                    f"{size} bytes were announced, but {'more' if count > size else count} were received."
                )
            if digest.hexdigest() != oid:
                raise Unprocessable(f"The received file is not the announced one: its SHA-256 is {digest.hexdigest()}.")
            await self.add(temporary, oid)
        finally:
            temporary.unlink(missing_ok=True)


def _append(descriptor: int, digest: "hashlib._Hash", part: bytes) -> None:
    digest.update(part)
    view = memoryview(part)
    while view:
        view = view[os.write(descriptor, view) :]
