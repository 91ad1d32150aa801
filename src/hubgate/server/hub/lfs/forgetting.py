"""Large files that no repo has any more go, a day after they came.

Somebody may be sending the same file at this very moment. So it is set aside first, and only then judged: whoever came
before that finds it back, because it is young or linked by then, and whoever comes after it puts a file of their own
in its place. One process does this at a time; what it set aside when it was killed is judged by the next.
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

# Between the arrival of a file and its link.
ARRIVING_LASTS = DAY
SLICE = 500


@dataclass
class Forgetting:
    repos: Repos
    _round: Iterator[Path] = field(default_factory=lambda: iter(()))

    async def step(self) -> bool:
        """A slice of all files; whether there are more."""
        files = await in_thread(lambda: list(islice(self._round, SLICE)))
        if not files:
            self._round = self.repos.large_files.all()
            files = await in_thread(lambda: list(islice(self._round, SLICE)))
        old = await in_thread(lambda: [file for file in files if self._is_old(file)])
        linked = await self._linked(old)
        aside = self.repos.large_files.aside
        await in_thread(_set_aside, [file for file in old if file.name not in linked], aside)
        going = await in_thread(lambda: list(aside.glob("*")))
        linked = await self._linked(going)
        await in_thread(self._settle, going, linked)
        return len(files) == SLICE

    async def _linked(self, files: Sequence[Path]) -> set[str]:
        if not files:
            return set()
        names = [file.name for file in files]
        return await self.repos.db.read_long(lambda tx: store.linked_among(tx, names))

    def _settle(self, going: Sequence[Path], linked: set[str]) -> None:
        for file in going:
            if file.name in linked or not self._is_old(file):
                file.replace(self.repos.large_files.at(file.name))
            else:
                file.unlink()

    def _is_old(self, file: Path) -> bool:
        try:
            return self.repos.clock() - int(file.stat().st_mtime * SECOND) >= ARRIVING_LASTS
        except FileNotFoundError:
            return False


def _set_aside(files: Sequence[Path], aside: Path) -> None:
    aside.mkdir(parents=True, exist_ok=True)
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            file.replace(aside / file.name)
