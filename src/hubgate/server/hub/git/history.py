"""Walking the history of a commit."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import monotonic

import pygit2
from pygit2.enums import SortMode

from hubgate.server.hub.git.objects import opened
from hubgate.server.hub.git.recent import Recent

# Beyond this many commits the search for the last change of a path ends, and the oldest one looked at is named.
DEEPEST = 2_000
# And after this many seconds: every caller waits for the same few threads.
LONGEST_SEARCH = 2.0
# The end of the year 9999: what comes after it has no date. A pushed commit may claim any.
_LATEST = 253_402_300_799


@dataclass(frozen=True, slots=True)
class Commit:
    sha: str
    title: str
    message: str
    # Seconds since the epoch.
    time: int
    author: str


async def recent(folder: Path, commit: str, skip: int, most: int) -> list[Commit]:
    """Newest first, in git's own order: the whole history is not read to show its beginning."""

    def work(repo: pygit2.Repository) -> list[Commit]:
        walk = repo.walk(commit, SortMode.NONE)
        return [described(found) for found in islice(walk, skip, skip + most)]

    return await opened(folder, work)


# What leads to a commit never changes, and each page of a history asks for its length.
_COUNTED: Recent[tuple[str, str], int] = Recent(most=2 * 1024 * 1024, most_each=8)


async def count(folder: Path, commit: str) -> int:
    key = (str(folder), commit)
    found = _COUNTED.get(key)
    if found is None:
        found = await opened(folder, lambda repo: sum(1 for _ in repo.walk(commit, SortMode.NONE)))
        _COUNTED.keep(key, found, 8)
    return found


async def last_changes(
    folder: Path, commit: str, paths: Sequence[str], deepest: int = DEEPEST, seconds: float = LONGEST_SEARCH
) -> dict[str, Commit]:
    """For each path the newest commit in which it became what it is."""

    def work(repo: pygit2.Repository) -> dict[str, Commit]:
        found, oldest = _changes(islice(_walk(repo, commit), deepest), paths, seconds)
        return {path: described(oldest) for path in paths if oldest} | found

    return await opened(folder, work)


async def recent_changes(folder: Path, commit: str, paths: Sequence[str], deepest: int) -> dict[str, Commit]:
    """The same, as far as it is found among the latest `deepest` commits."""

    def work(repo: pygit2.Repository) -> dict[str, Commit]:
        return _changes(islice(repo.walk(commit, SortMode.NONE), deepest), paths, LONGEST_SEARCH)[0]

    return await opened(folder, work)


def _changes(
    walk: Iterable[pygit2.Commit], paths: Sequence[str], seconds: float
) -> tuple[dict[str, Commit], pygit2.Commit | None]:
    """What was found, and the last commit looked at."""
    waiting, found, oldest = set(paths), dict[str, Commit](), None
    until = monotonic() + seconds
    for current in walk:
        oldest = current
        changed = _changed_by(current)
        here = waiting if changed is None else waiting & changed
        if here:
            found |= dict.fromkeys(here, described(current))
            waiting = waiting - here
        if not waiting or monotonic() > until:
            break
    return found, oldest


def _changed_by(commit: pygit2.Commit) -> set[str] | None:
    """The files and folders in which it differs from every parent: a merge is where a path changed only if no side had
    it like this. None, for everything, where there is no parent.
    """
    changed: set[str] | None = None
    for parent in commit.parents:
        diff = parent.tree.diff_to_tree(commit.tree) if parent.tree_id != commit.tree_id else ()
        differs = {path for delta in _deltas(diff) for path in _with_folders(delta)}
        changed = differs if changed is None else changed & differs
        if not changed:
            break
    return changed


def _deltas(diff: pygit2.Diff | tuple[()]) -> Iterator[str]:
    if isinstance(diff, pygit2.Diff):
        for delta in diff.deltas:
            yield from {file.raw_path.decode(errors="replace") for file in (delta.old_file, delta.new_file)}


def _with_folders(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]


def _walk(repo: pygit2.Repository, commit: str) -> Iterable[pygit2.Commit]:
    return repo.walk(commit, SortMode.TOPOLOGICAL | SortMode.TIME)


def described(commit: pygit2.Commit) -> Commit:
    message = _text(commit, commit.raw_message).strip("\n")
    title, _, rest = message.partition("\n")
    time = min(max(commit.commit_time, 0), _LATEST)
    return Commit(str(commit.id), title.strip(), rest.strip("\n"), time, _text(commit, commit.author.raw_name))


def _text(commit: pygit2.Commit, raw: bytes) -> str:
    """In the encoding the commit claims, if there is one of that name; some of them make halves of characters."""
    try:
        text = raw.decode(commit.message_encoding or "utf-8", "replace")
    except (LookupError, ValueError):
        text = raw.decode(errors="replace")
    return text.encode(errors="replace").decode()
