"""A quarantine for pushed objects until they are checked. Its content cannot be read through the repo, and a push that
fails deletes all of it.
"""

import contextlib
import errno
import secrets
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pygit2
from msgspec import Struct

from hubgate.server.errors import NotFound, Unavailable
from hubgate.server.hub.git.objects import repository
from hubgate.server.hub.git.threads import in_long_thread, in_thread
from hubgate.server.storage.fsync import sync_path

FOLDER = "incoming"

# Git discovers a pack by its index, so the index is moved last.
_ORDER = {".pack": 0, ".rev": 1, ".idx": 2}


class Quarantine(Struct, frozen=True):
    """Pushed objects in `path`, not yet part of the repo at `folder`. Both are on the same file system."""

    folder: Path
    path: Path

    @property
    def env_with_repo(self) -> Mapping[str, str]:
        """Environment for a git program that writes to the quarantine and reads the repo too."""
        # Quoted: an unquoted colon would end the path (git, "GIT_ALTERNATE_OBJECT_DIRECTORIES").
        escaped = str(self.folder / "objects").replace("\\", "\\\\").replace('"', '\\"')
        return {**self.env_without_repo, "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{escaped}"'}

    @property
    def env_without_repo(self) -> Mapping[str, str]:
        """Environment for a git program that sees only the pushed objects."""
        return {"GIT_OBJECT_DIRECTORY": str(self.path)}

    def opened(self) -> pygit2.Repository:
        """The repository with the objects of repo and quarantine, for use in a thread."""
        repo = repository(self.folder)
        repo.odb.add_disk_alternate(str(self.path))
        return repo

    async def size(self) -> int:
        """The bytes that `land` would add to the repo."""
        return await in_thread(lambda: sum(file.stat().st_size for file in (self.path / "pack").iterdir()))

    async def not_in_repo(self, shas: Sequence[str]) -> list[str]:
        """The ids of objects that the repo does not have yet."""

        def work() -> list[str]:
            repo = repository(self.folder)
            return [sha for sha in shas if sha not in repo]

        return await in_thread(work)

    async def land(self) -> None:
        """Move the objects into the repo. On return the objects survive a power failure."""
        await in_long_thread(self._land)

    def _land(self) -> None:
        target = self.folder / "objects/pack"
        files = sorted((self.path / "pack").iterdir(), key=lambda file: _ORDER.get(file.suffix, -1))
        for file in files:
            sync_path(file)
        try:
            for file in files:
                # A pack is named by the hash of its content: an existing pack of this name is identical.
                file.replace(target / file.name)
            sync_path(target)
        except FileNotFoundError:
            raise NotFound("The repo was deleted by another request.", code="RepoNotFound") from None


@contextlib.asynccontextmanager
async def quarantine(root: Path, folder: Path) -> AsyncIterator[Quarantine]:
    path = root / FOLDER / secrets.token_hex(16)
    try:
        await in_thread((path / "pack").mkdir, parents=True)
        yield Quarantine(folder, path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Unavailable("The hub's disk is full.", retry_after=60) from error
        raise
    finally:
        await in_thread(shutil.rmtree, path, ignore_errors=True)
