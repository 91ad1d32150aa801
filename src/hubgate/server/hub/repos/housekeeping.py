"""Housekeeping on disk: repacks many small packs into few, and deletes leftovers of killed processes.

No git object is ever deleted, reachable or not: a push in progress may rely on it. A large file is deleted a day after
it was found without a link to a repo (`objects/sweep.py`). Only one process does housekeeping at a time, and none
during a backup.
"""

import contextlib
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from hubgate.server.clock import DAY, HOUR, SECOND
from hubgate.server.errors import NotFound, Unavailable
from hubgate.server.hub.cas.cleanup import XorbCleanup, find_used_objects
from hubgate.server.hub.cas.model import XORBS
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import program, quarantine
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.guests.sweep import GuestSweep
from hubgate.server.hub.lfs.files import KIND, find_used
from hubgate.server.hub.repos import copied_refs, store
from hubgate.server.objects.sweep import UnusedContentSweep
from hubgate.server.storage import data_folder

log = logging.getLogger("hubgate.worker")

EVERY_SECONDS = 600.0
# Folders of repos per step.
REPOS_PER_STEP = 200
MAX_PACKS = 20
# Loose objects in one of the 256 folders over which they are evenly distributed.
MAX_LOOSE_SAMPLED = 8
# Uploads write continuously: an upload without a write for this long is abandoned.
ABANDONED_UPLOAD_AGE = DAY
# The longest time between the creation of a folder and of its row.
MAX_CREATION_TIME = HOUR
REPACK_SECONDS = 2 * 3600.0

_REPACK = (
    # The index of the new pack must be durable before the old packs are deleted.
    *("-c", "core.fsync=committed,derived-metadata"),
    *("-c", "core.bigFileThreshold=16m", "-c", "pack.windowMemory=128m", "-c", "pack.threads=1"),
    # Whole packs and all loose objects are combined, reachable or not.
    *("repack", "--geometric=2", "-d", "-q", "-n"),
)


@dataclass
class Housekeeping:
    repos: Repos
    max_packs: int = MAX_PACKS
    _large_files: UnusedContentSweep = field(init=False)
    _xorbs: XorbCleanup = field(init=False)
    _lost_xorbs: UnusedContentSweep = field(init=False)
    _guests: GuestSweep = field(init=False)
    _round: Iterator[Path] = field(default_factory=lambda: iter(()))

    def __post_init__(self) -> None:
        repos = self.repos
        self._large_files = UnusedContentSweep(repos.db, repos.large_files.objects, repos.clock, KIND, find_used)
        self._xorbs = XorbCleanup(repos)
        # Objects of uploads that were interrupted before their row was added.
        self._lost_xorbs = UnusedContentSweep(repos.db, repos.objects, repos.clock, XORBS, find_used_objects)
        self._guests = GuestSweep(self.repos)

    async def step(self) -> bool:
        """Process one batch of folders and large files. Each round starts by deleting leftovers of uploads."""
        with data_folder.housekeeping_lock(self.repos.folders.root.parent) as acquired:
            if not acquired:
                return False
            folders = await in_thread(lambda: list(islice(self._round, REPOS_PER_STEP)))
            if not folders:
                await in_thread(self._delete_leftovers)
                self._round = self.repos.folders.all()
                folders = await in_thread(lambda: list(islice(self._round, REPOS_PER_STEP)))
            for folder in folders:
                # The repo may be deleted concurrently.
                with contextlib.suppress(FileNotFoundError, NotFound):
                    await self._maintain(folder)
            more_guests = await self._guests.step()
            more_files = await self._large_files.step()
            more_xorbs = await self._xorbs.step() or await self._lost_xorbs.step()
            return more_guests or more_files or more_xorbs or len(folders) == REPOS_PER_STEP

    async def _maintain(self, folder: Path) -> None:
        if not await store.exists(self.repos.db, folder.stem):
            if await in_thread(self._is_older, folder, MAX_CREATION_TIME):
                log.info("deleting the folder %s, which does not belong to a repo", folder.name)
                await in_thread(self.repos.folders.remove, folder.stem)
        elif await in_thread(self._needs_repack, folder):
            try:
                await copied_refs.refresh(self.repos, folder.stem)
                await program.run(_REPACK, folder, seconds=REPACK_SECONDS)
                await in_thread(self._delete_older, (folder / "objects/pack").glob("*tmp[-_]*"), ABANDONED_UPLOAD_AGE)
            except (program.GitFailed, Unavailable) as error:
                log.warning("the folder %s cannot be repacked: %s", folder.name, error)

    def _needs_repack(self, folder: Path) -> bool:
        packs, loose = (folder / "objects/pack").glob("*.pack"), (folder / "objects/17").glob("*")
        return sum(1 for _ in packs) > self.max_packs or sum(1 for _ in loose) > MAX_LOOSE_SAMPLED

    def _delete_leftovers(self) -> None:
        folders, large = self.repos.folders.root, self.repos.large_files.root
        self._delete_older((folders / quarantine.FOLDER).glob("*"), ABANDONED_UPLOAD_AGE)
        for name in ("incoming", "parts"):
            self._delete_older((large / name).glob("*"), ABANDONED_UPLOAD_AGE)
        self._restore_moved(large / "going")
        for deleted_folder in folders.glob("??/*.gone"):
            _remove(deleted_folder)

    def _restore_moved(self, folder: Path) -> None:
        """Move files back that an earlier version of the hub had moved in order to delete them."""
        for file in folder.glob("*"):
            place = folder.parent / file.name[:2] / file.name[2:4] / file.name
            place.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                file.replace(place)

    def _delete_older(self, paths: Iterator[Path], age: int) -> None:
        for path in paths:
            if self._is_older(path, age):
                _remove(path)

    def _is_older(self, path: Path, age: int) -> bool:
        """Whether the newest file in a path is at least `age` old."""
        # Not with rglob, which fails if an upload that ends deletes its folder concurrently.
        inside = (Path(at, name) for at, folders, files in os.walk(path) for name in (*folders, *files))
        newest = max(map(_changed_at, (path, *inside)))
        return self.repos.clock() - newest >= age


def _changed_at(path: Path) -> int:
    try:
        return int(path.stat().st_mtime * SECOND)
    except FileNotFoundError:
        return 0


def _remove(path: Path) -> None:
    remove: Callable[[Path], object] = shutil.rmtree if path.is_dir() else Path.unlink
    # Another process may be deleting the same path.
    with contextlib.suppress(OSError):
        remove(path)
