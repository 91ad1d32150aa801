"""Where pushed objects wait until it is known that they belong here. Nothing in it can be read through the repo, and a
push that fails takes all of it away, whatever was sent.
"""

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pygit2

from hubgate.server.errors import NotFound, Unavailable
from hubgate.server.hub.git.objects import repository
from hubgate.server.hub.git.threads import in_long_thread, in_thread

FOLDER = "incoming"

# An index makes its pack known, so it comes last.
_ORDER = {".pack": 0, ".rev": 1, ".idx": 2}


@dataclass(frozen=True)
class Quarantine:
    """`folder` is the repo's, `place` a folder of objects on the same file system."""

    folder: Path
    place: Path

    @property
    def with_repo(self) -> Mapping[str, str]:
        """For a git program that writes here and reads both."""
        # Quoted, or a colon in it would be the end of the name (git, "GIT_ALTERNATE_OBJECT_DIRECTORIES").
        escaped = str(self.folder / "objects").replace("\\", "\\\\").replace('"', '\\"')
        return {**self.alone, "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{escaped}"'}

    @property
    def alone(self) -> Mapping[str, str]:
        """For one that sees only what came."""
        return {"GIT_OBJECT_DIRECTORY": str(self.place)}

    def opened(self) -> pygit2.Repository:
        """Objects of both, for a thread."""
        repo = repository(self.folder)
        repo.odb.add_disk_alternate(str(self.place))
        return repo

    async def size(self) -> int:
        """The bytes that would land."""
        return await in_thread(lambda: sum(file.stat().st_size for file in (self.place / "pack").iterdir()))

    async def without_known(self, shas: Sequence[str]) -> list[str]:
        """Those that the repo itself does not have yet."""

        def work() -> list[str]:
            repo = repository(self.folder)
            return [sha for sha in shas if sha not in repo]

        return await in_thread(work)

    async def land(self) -> None:
        """Into the repo, for good: on return they survive a power cut."""
        await in_long_thread(self._land)

    def _land(self) -> None:
        target = self.folder / "objects/pack"
        files = sorted((self.place / "pack").iterdir(), key=lambda file: _ORDER.get(file.suffix, -1))
        for file in files:
            _sync(file)
        try:
            for file in files:
                # A pack is named by the hash of what is in it: one that is there already is the same.
                file.replace(target / file.name)
            _sync(target)
        except FileNotFoundError:
            raise NotFound("The repo was deleted meanwhile.", code="RepoNotFound") from None


@contextlib.asynccontextmanager
async def quarantine(root: Path, folder: Path) -> AsyncIterator[Quarantine]:
    place = root / FOLDER / secrets.token_hex(16)
    try:
        await in_thread((place / "pack").mkdir, parents=True)
        yield Quarantine(folder, place)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Unavailable("The hub's disk is full.", retry_after=60) from error
        raise
    finally:
        await in_thread(shutil.rmtree, place, ignore_errors=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
