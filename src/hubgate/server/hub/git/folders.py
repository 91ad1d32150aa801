"""The folders on disk that store the objects of repos.

A folder is a bare git repository. The database has the refs; they are copied to the folder for git programs
(`repos.copied_refs`). The folder is named by the repo's id, so that moving a repo moves nothing on disk.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

# Acknowledged objects survive a power failure. Git's housekeeping is off: it does not know the refs in the database.
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


@lru_cache(maxsize=4_096)
def _folder_of(root: Path, repo_id: str) -> Path:
    # Two levels, so that no directory has a million entries; the end of an id is random, its beginning is a time.
    return root / repo_id[-2:] / f"{repo_id}.git"


class Folders(Struct, frozen=True):
    root: Path

    def of(self, repo_id: str) -> Path:
        return _folder_of(self.root, repo_id)

    def create(self, repo_id: str) -> Path:
        folder = self.of(repo_id)
        for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        _write(folder / "config", _CONFIG)
        # Last: without HEAD, git does not recognize the folder as a repository.
        _write(folder / "HEAD", "ref: refs/heads/main\n")
        return folder

    def remove(self, repo_id: str) -> None:
        """Delete a folder. It is renamed first, so that concurrent readers never see a half-deleted repository."""
        folder = self.of(repo_id)
        renamed = folder.with_suffix(".gone")
        with contextlib.suppress(FileNotFoundError):
            folder.rename(renamed)
        shutil.rmtree(renamed, ignore_errors=True)

    def all(self) -> Iterator[Path]:
        yield from self.root.glob("??/*.git")


def _write(path: Path, text: str) -> None:
    """Write and sync a file. An empty HEAD after a power failure would be worse than a missing HEAD."""
    with path.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
