"""Where the objects of each repo are.

A folder is a bare git repository without refs of its own: they are copied there for git programs
(`repos.copied_refs`). It is named by the repo's id, so that moving a repo moves nothing on disk.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Objects survive a power cut once they were acknowledged. Git's own housekeeping is off: it would not know the refs in
# the database.
_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\tfsync = committed
[gc]
\tauto = 0
[receive]
\tautogc = false
[uploadpack]
\tallowFilter = true
\tallowAnySHA1InWant = true
"""


@dataclass(frozen=True)
class Folders:
    root: Path

    def of(self, repo_id: str) -> Path:
        # Two levels, so that no directory holds a million names; the end of an id is random, its beginning is a time.
        return self.root / repo_id[-2:] / f"{repo_id}.git"

    def make(self, repo_id: str) -> Path:
        folder = self.of(repo_id)
        for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        _write(folder / "config", _CONFIG)
        # Last: without it this is no repository to anyone.
        _write(folder / "HEAD", "ref: refs/heads/main\n")
        return folder

    def remove(self, repo_id: str) -> None:
        """Renamed first, so that whoever comes half-way finds nothing rather than half of it."""
        folder = self.of(repo_id)
        going = folder.with_suffix(".gone")
        with contextlib.suppress(FileNotFoundError):
            folder.rename(going)
        shutil.rmtree(going, ignore_errors=True)

    def all(self) -> Iterator[Path]:
        yield from self.root.glob("??/*.git")


def _write(place: Path, text: str) -> None:
    """Synced: after a power cut an empty HEAD would be worse than none, and the first commit syncs only its objects."""
    with place.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
