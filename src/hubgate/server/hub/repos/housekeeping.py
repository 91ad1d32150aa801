"""Housekeeping on disk: repacks many small packs into few, and deletes leftovers of killed processes.

No git object is ever deleted, reachable or not: a push in progress may rely on it. A large file is deleted once no repo
links to it. Only one process does housekeeping at a time, and none during a backup.
"""

import contextlib
import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from hubgate.server.clock import DAY, HOUR, SECOND
from hubgate.server.errors import Unavailable
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import program, quarantine
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.guests.sweep import GuestSweep
from hubgate.server.hub.lfs import store as lfs_store
from hubgate.server.hub.repos import copied_refs, store
from hubgate.server.storage import data_folder

log = logging.getLogger("hubgate.worker")

EVERY_SECONDS = 600.0
# Folders of repos and large files per step.
REPOS_PER_STEP = 200
FILES_PER_STEP = 500
MAX_PACKS = 20
# Loose objects in one of the 256 folders over which they are evenly distributed.
MAX_LOOSE_SAMPLED = 8
# Uploads write continuously: an upload without a write for this long is abandoned.
ABANDONED_UPLOAD_AGE = DAY
# The longest time between the creation of a folder and of its row.
MAX_CREATION_TIME = HOUR
# The longest time between receiving a large file and linking it.
MAX_LINKING_TIME = DAY
REPACK_SECONDS = 2 * 3600.0

_REPACK = (
    # The index of the new pack must be durable before the old packs are deleted.
    *("-c", "core.fsync=committed,derived-metadata"),
    *("-c", "core.bigFileThreshold=16m", "-c", "pack.windowMemory=128m", "-c", "pack.threads=1"),
    # Whole packs and all loose objects are combined, reachable or not.
    *("repack", "--geometric=2", "-d", "-q", "-n"),
)


@dataclass
class LargeFileCleanup:
    """Deletes large files that no repo links to, a day after they were received.

    A client may upload the same file concurrently. So a file is first moved to a separate folder and checked again. If
    it was received or linked just before the move, it is now recent or linked, and is moved back; an upload after the
    move writes a new file. Files that a killed process left in that folder are checked by the next process.
    """

    repos: Repos
    _round: Iterator[Path] = field(default_factory=lambda: iter(()))

    async def step(self) -> bool:
        """Check one batch of files; return whether there are more."""
        files = await in_thread(lambda: list(islice(self._round, FILES_PER_STEP)))
        if not files:
            self._round = self.repos.large_files.all()
            files = await in_thread(lambda: list(islice(self._round, FILES_PER_STEP)))
        old = await in_thread(lambda: [file for file in files if self._is_old(file)])
        linked = await self._linked(old)
        folder = self.repos.large_files.deletion_candidates
        await in_thread(_move_to_folder, [file for file in old if file.name not in linked], folder)
        candidates = await in_thread(lambda: list(folder.glob("*")))
        linked = await self._linked(candidates)
        await in_thread(self._delete_or_restore, candidates, linked)
        return len(files) == FILES_PER_STEP

    async def _linked(self, files: Sequence[Path]) -> set[str]:
        if not files:
            return set()
        names = [file.name for file in files]
        return await self.repos.db.read_long(lambda tx: lfs_store.linked_among(tx, names))

    def _delete_or_restore(self, candidates: Sequence[Path], linked: set[str]) -> None:
        for file in candidates:
            if file.name in linked or not self._is_old(file):
                file.replace(self.repos.large_files.at(file.name))
            else:
                file.unlink()

    def _is_old(self, file: Path) -> bool:
        try:
            return self.repos.clock() - int(file.stat().st_mtime * SECOND) >= MAX_LINKING_TIME
        except FileNotFoundError:
            return False


@dataclass
class Housekeeping:
    repos: Repos
    max_packs: int = MAX_PACKS
    _large_files: LargeFileCleanup = field(init=False)
    _guests: GuestSweep = field(init=False)
    _round: Iterator[Path] = field(default_factory=lambda: iter(()))

    def __post_init__(self) -> None:
        self._large_files = LargeFileCleanup(self.repos)
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
                await self._maintain(folder)
            more_guests = await self._guests.step()
            more_files = await self._large_files.step()
            return more_guests or more_files or len(folders) == REPOS_PER_STEP

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
        for deleted_folder in folders.glob("??/*.gone"):
            _remove(deleted_folder)

    def _delete_older(self, paths: Iterator[Path], age: int) -> None:
        for path in paths:
            if self._is_older(path, age):
                _remove(path)

    def _is_older(self, path: Path, age: int) -> bool:
        """Whether the newest file in a path is at least `age` old."""
        newest = max((_changed_at(inside) for inside in (path, *path.rglob("*"))), default=0)
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


def _move_to_folder(files: Sequence[Path], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            file.replace(folder / file.name)
