"""Large files, named by the SHA-256 of their content. Uploads are received in the data folder, and a file is stored
under its name (`objects`) only after its size and hash were checked, so a stored file is complete.
"""

import errno
import hashlib
import os
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from hubgate.server import failpoint
from hubgate.server.errors import Unprocessable
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.lfs import store
from hubgate.server.objects.deletions import reserve
from hubgate.server.objects.model import Objects, StoreFull, hashed_key
from hubgate.server.storage.database import Database, Tx

KIND = "lfs"
_OID = re.compile(r"[0-9a-f]{64}\Z")


class LargeFiles(Struct, frozen=True):
    """`root` is the folder of uploads in progress."""

    objects: Objects
    db: Database
    root: Path

    async def has(self, oid: str, size: int) -> bool:
        return await self.objects.size(key_of(oid)) == size

    async def link(self, oid: str, seconds: int, headers: Mapping[str, str]) -> str | None:
        """The address of a stored file in the store; None if the hub has to send the file."""
        return await self.objects.link(key_of(oid), seconds, headers)

    async def local_file(self, oid: str) -> Path | None:
        return await self.objects.local_file(key_of(oid))

    def read(self, oid: str, start: int, end: int) -> AsyncGenerator[bytes, None]:
        return self.objects.get(key_of(oid), start, end)

    def temporary(self) -> Path:
        """The path of a new temporary file on the file system of the data folder."""
        folder = self.root / "incoming"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / secrets.token_hex(16)

    async def add(self, temporary: Path, oid: str) -> None:
        """Store a complete, checked and synced file, and delete the temporary one. Link it within a day."""
        try:
            # Even if the file exists: a file that no repo links to may be about to be deleted.
            await reserve(self.db, key_of(oid))
            failpoint.hit("large-file-received")
            await self.objects.put(key_of(oid), temporary, oid)
            failpoint.hit("large-file-stored")
        finally:
            await in_thread(temporary.unlink, missing_ok=True)

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
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StoreFull from error
            raise
        finally:
            temporary.unlink(missing_ok=True)


def key_of(oid: str) -> str:
    return hashed_key(KIND, oid)


async def find_used(tx: Tx, keys: Sequence[str]) -> set[str]:
    """Those keys that a repo links to, and those that are not of large files."""
    files = {key: name for key in keys if _is_large_file(key, name := key.rpartition("/")[2])}
    linked = await store.linked_among(tx, list(files.values()))
    return {key for key in keys if key not in files or files[key] in linked}


def _is_large_file(key: str, name: str) -> bool:
    return _OID.match(name) is not None and key == key_of(name)


def _append(descriptor: int, digest: "hashlib._Hash", part: bytes) -> None:
    digest.update(part)
    view = memoryview(part)
    while view:
        view = view[os.write(descriptor, view) :]
