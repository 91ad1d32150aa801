"""Content in the data folder: a key is the path of a file. LFS files are where earlier versions of the hub stored them,
so an upgrade moves nothing.
"""

import errno
import os
import secrets
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import ParamSpec, TypeVar

from hubgate.server.objects.model import (
    ObjectMissing,
    StoredObject,
    StoreFull,
    StoreProblem,
    StoreUnavailable,
    check_key,
)
from hubgate.server.objects.threads import in_thread
from hubgate.server.storage.fsync import sync_path

P = ParamSpec("P")
T = TypeVar("T")

# A compromise: smaller chunks cost more thread switches, larger ones more memory. An existing client reads 64 ranges of
# a file at once.
_CHUNK = 256 * 1024
_PAGE = 1_000
# Uploads in progress, and deletions in progress of earlier versions, in the folder of LFS files.
INCOMING = "lfs/incoming"
NOT_CONTENT = frozenset({INCOMING, "lfs/parts", "lfs/going"})


class FolderObjects:
    """Implements `Objects` in a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def name(self) -> str:
        return str(self._root)

    def path(self, key: str) -> Path:
        return self._root / check_key(key)

    def temporary(self) -> Path:
        """The path of a new temporary file on the same file system."""
        folder = self._root / INCOMING
        folder.mkdir(parents=True, exist_ok=True)
        return folder / secrets.token_hex(16)

    async def put(self, key: str, content: Path | bytes, digest: str) -> bool:  # noqa: ARG002 - the caller computed it
        return await self._in_thread(self._put, self.path(key), content)

    def _put(self, path: Path, content: Path | bytes) -> bool:
        is_new = not path.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        # Replaced even if it exists: it could have been damaged. Concurrent calls write the same bytes.
        if isinstance(content, Path):
            content.replace(path)
        else:
            self._write(content).replace(path)
        sync_path(path.parent)
        return is_new

    def _write(self, content: bytes) -> Path:
        temporary = self.temporary()
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        return temporary

    async def get(self, key: str, start: int, end: int) -> AsyncGenerator[bytes, None]:
        try:
            descriptor = await in_thread(os.open, self.path(key), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise ObjectMissing(key) from None
        try:
            at = start
            while at < end:
                chunk = await in_thread(os.pread, descriptor, min(_CHUNK, end - at), at)
                if not chunk:
                    raise StoreUnavailable from StoreProblem(f"{self.path(key)} has fewer bytes than {end}")
                at += len(chunk)
                yield chunk
        finally:
            os.close(descriptor)

    async def link(
        self,
        key: str,  # noqa: ARG002
        seconds: int,  # noqa: ARG002
        headers: Mapping[str, str],  # noqa: ARG002
        span: tuple[int, int] | None = None,  # noqa: ARG002
    ) -> str | None:
        return None

    async def local_file(self, key: str) -> Path | None:
        path = self.path(key)
        return path if await in_thread(path.is_file) else None

    async def size(self, key: str) -> int | None:
        try:
            return (await in_thread(self.path(key).stat)).st_size
        except FileNotFoundError:
            return None

    async def delete(self, key: str) -> None:
        await self._in_thread(self.path(key).unlink, missing_ok=True)

    async def list(self, prefix: str, after: str = "") -> AsyncGenerator[StoredObject, None]:
        found = self._walk(prefix, after)
        while page := await in_thread(lambda: list(islice(found, _PAGE))):
            for item in page:
                yield item

    def _walk(self, folder: str, after: str) -> Iterator[StoredObject]:
        """Walk a folder in the order of S3: a folder is ordered as if its name ended with a slash."""
        try:
            with os.scandir(self._root / folder) as entries:
                found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        except FileNotFoundError:
            return
        for key, is_folder in sorted(
            (folder + name + ("/" if is_folder else ""), is_folder) for name, is_folder in found
        ):
            if is_folder and key.rstrip("/") not in NOT_CONTENT and (key > after or after.startswith(key)):
                yield from self._walk(key, after)
            elif not is_folder and key > after:
                try:
                    yield StoredObject(key, (self._root / key).stat().st_size)
                except FileNotFoundError:
                    continue

    async def delete_unfinished(self, before: int) -> int:  # noqa: ARG002
        """Housekeeping deletes temporary files of all stores."""
        return 0

    async def close(self) -> None:
        pass

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await in_thread(work, *args, **kwargs)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StoreFull from error
            raise
