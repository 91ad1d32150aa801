"""Merging two commits with the git program, which can be killed if a large merge takes too long.

A trial merge finds the conflicts and writes to a temporary folder only. A merge without conflicts is then written to
the repo and synced.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from hubgate.server.errors import Unavailable
from hubgate.server.hub.git import program
from hubgate.server.hub.git.fsync import sync_objects
from hubgate.server.hub.git.history import is_ancestor
from hubgate.server.hub.git.objects import SizedCache
from hubgate.server.hub.git.quarantine import quarantine
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.git.writes import Author, write_merge_commit

# Names of conflicting files that are reported.
MAX_CONFLICTS = 100

# Renamed folders are not followed: a file would move to a path that its author never saw.
_SETTINGS = ("-c", "merge.directoryRenames=false", "-c", "merge.renameLimit=1000")
_COMMAND = (*_SETTINGS, "merge-tree", "--write-tree", "--no-messages", "--name-only", "-z")
_CLEAN, _CONFLICT = 0, 1


class TrialMerge(Struct, frozen=True):
    has_conflicts: bool
    # Paths of conflicting files, at most MAX_CONFLICTS; empty if git cannot name them.
    conflicts: tuple[str, ...] = ()


class MergeConflict(Exception):
    """The commits cannot be merged."""

    def __init__(self, conflicts: Sequence[str]) -> None:
        super().__init__(f"{len(conflicts)} conflicts")
        self.conflicts = tuple(conflicts)


# The result depends only on the two commits, and so, roughly, does the time it takes.
_TRIALS: SizedCache[tuple[str, str, str], TrialMerge] = SizedCache(max_bytes=1024 * 1024, max_entry_bytes=16 * 1024)
_TOO_SLOW: SizedCache[tuple[str, str, str], bool] = SizedCache(max_bytes=256 * 1024, max_entry_bytes=1)


async def try_merge(root: Path, folder: Path, ours: str, theirs: str, seconds: float) -> TrialMerge:
    """Find the conflicts of a merge. `root` is the folder of all repos. Commits without a common ancestor conflict."""
    key = (str(folder), ours, theirs)
    found = _TRIALS.get(key)
    if found is None:
        async with quarantine(root, folder) as temporary:
            try:
                status, names = await _merge_tree(folder, ours, theirs, seconds, temporary.env_with_repo)
            except Unavailable:
                _TOO_SLOW.add(key, True, 1)
                raise
        found = TrialMerge(status != _CLEAN, tuple(names[1 : MAX_CONFLICTS + 1]) if status != _CLEAN else ())
        _TRIALS.add(key, found, sum(len(name.encode()) for name in found.conflicts))
    return found


def is_too_slow(folder: Path, ours: str, theirs: str) -> bool:
    """Whether a trial merge has exceeded its time limit before: readers of a page must not repeat it."""
    return _TOO_SLOW.get((str(folder), ours, theirs)) is not None


async def merge(
    root: Path, folder: Path, ours: str, theirs: str, message: str, author: Author, now: int, seconds: float
) -> str:
    """Write a merge commit and return its id; raise MergeConflict if there are conflicts. If `ours` contains `theirs`
    already, return `ours`. Each git program may take `seconds`, otherwise Unavailable is raised.
    """
    if await is_ancestor(folder, ours, theirs, seconds=seconds):
        return ours
    trial = await try_merge(root, folder, ours, theirs, seconds)
    if trial.has_conflicts:
        raise MergeConflict(trial.conflicts)
    _, names = await _merge_tree(folder, ours, theirs, seconds)
    sha = await write_merge_commit(folder, names[0], [ours, theirs], message, author, now)
    listed = ["rev-list", "--objects", "--no-object-names", sha, "--not", ours, theirs, "--"]
    written = await program.run(listed, folder, seconds=seconds)
    await in_thread(sync_objects, folder, written.decode().split())
    return sha


async def _merge_tree(
    folder: Path, ours: str, theirs: str, seconds: float, env: Mapping[str, str] | None = None
) -> tuple[int, list[str]]:
    """The status, and the id of the tree followed by the paths of conflicting files."""
    try:
        status, output = await program.run_with_status(
            [*_COMMAND, ours, theirs],
            folder,
            env=env,
            seconds=seconds,
            low_priority=True,
            accepted=(_CLEAN, _CONFLICT),
        )
    except program.GitFailed as error:
        if "unrelated histories" not in error.stderr:
            raise
        return _CONFLICT, [""]
    return status, list(dict.fromkeys(output.decode(errors="replace").rstrip("\0").split("\0")))
