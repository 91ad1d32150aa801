"""Deletes large files that no repo links to, a day after they were received.

A client may upload the same file concurrently. So a file is first set aside and then checked: a file that was received
or linked before it was set aside is restored, because it is recent or linked by then; a later upload writes a new file.
Only one process does this at a time; the next process checks files that a killed process had set aside.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from hubgate.server.clock import DAY, SECOND
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.lfs import store

# The longest time between receiving a file and linking it.
ARRIVING_LASTS = DAY
SLICE = 500


@dataclass
class GarbageCollection:
    repos: Repos
    _round: Iterator[Path] = field(default_factory=lambda: iter(()))

    async def step(self) -> bool:
        """Check a slice of all files; return whether there are more."""
        files = await in_thread(lambda: list(islice(self._round, SLICE)))
        if not files:
            self._round = self.repos.large_files.all()
            files = await in_thread(lambda: list(islice(self._round, SLICE)))
        old = await in_thread(lambda: [file for file in files if self._is_old(file)])
        linked = await self._linked(old)
        folder = self.repos.large_files.set_aside
        await in_thread(_set_aside, [file for file in old if file.name not in linked], folder)
        candidates = await in_thread(lambda: list(folder.glob("*")))
        linked = await self._linked(candidates)
        await in_thread(self._delete_or_restore, candidates, linked)
        return len(files) == SLICE

    async def _linked(self, files: Sequence[Path]) -> set[str]:
        if not files:
            return set()
        names = [file.name for file in files]
        return await self.repos.db.read_long(lambda tx: store.linked_among(tx, names))

    def _delete_or_restore(self, candidates: Sequence[Path], linked: set[str]) -> None:
        for file in candidates:
            if file.name in linked or not self._is_old(file):
                file.replace(self.repos.large_files.at(file.name))
            else:
                file.unlink()

    def _is_old(self, file: Path) -> bool:
        try:
            return self.repos.clock() - int(file.stat().st_mtime * SECOND) >= ARRIVING_LASTS
        except FileNotFoundError:
            return False


def _set_aside(files: Sequence[Path], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            file.replace(folder / file.name)
