"""Walking the history of a commit."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pygit2
from pygit2.enums import SortMode

from hubgate.server.hub.git.objects import opened

# Beyond this many commits the search for the last change of a path ends, and the oldest one looked at is named.
DEEPEST = 2_000
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


async def log(folder: Path, commit: str, skip: int, most: int) -> list[Commit]:
    """Newest first."""

    def work(repo: pygit2.Repository) -> list[Commit]:
        return [described(found) for found in islice(_walk(repo, commit), skip, skip + most)]

    return await opened(folder, work)


async def recent(folder: Path, commit: str, skip: int, most: int) -> list[Commit]:
    """The same in git's own order: the whole history is not read to show its beginning."""

    def work(repo: pygit2.Repository) -> list[Commit]:
        walk = repo.walk(commit, SortMode.NONE)
        return [described(found) for found in islice(walk, skip, skip + most)]

    return await opened(folder, work)


async def count(folder: Path, commit: str) -> int:
    return await opened(folder, lambda repo: sum(1 for _ in _walk(repo, commit)))


async def last_changes(folder: Path, commit: str, paths: Sequence[str]) -> dict[str, Commit]:
    """For each path the newest commit in which it became what it is."""

    def work(repo: pygit2.Repository) -> dict[str, Commit]:
        found, oldest = _changes(islice(_walk(repo, commit), DEEPEST), paths)
        return {path: described(oldest) for path in paths if oldest} | found

    return await opened(folder, work)


async def recent_changes(folder: Path, commit: str, paths: Sequence[str], deepest: int) -> dict[str, Commit]:
    """The same, as far as it is found among the latest `deepest` commits."""

    def work(repo: pygit2.Repository) -> dict[str, Commit]:
        return _changes(islice(repo.walk(commit, SortMode.NONE), deepest), paths)[0]

    return await opened(folder, work)


def _changes(walk: Iterable[pygit2.Commit], paths: Sequence[str]) -> tuple[dict[str, Commit], pygit2.Commit | None]:
    """What was found, and the last commit looked at."""
    waiting, found, oldest = set(paths), {}, None
    for current in walk:
        oldest = current
        parents = [_ids(parent.tree, waiting) for parent in current.parents]
        here = _ids(current.tree, waiting)
        for path in list(waiting):
            # A merge is where a path changed only if no side had it like this.
            if all(parent.get(path) != here.get(path) for parent in parents):
                found[path] = described(current)
                waiting.discard(path)
        if not waiting:
            break
    return found, oldest


def _walk(repo: pygit2.Repository, commit: str) -> Iterable[pygit2.Commit]:
    return repo.walk(commit, SortMode.TOPOLOGICAL | SortMode.TIME)


def _ids(tree: pygit2.Tree, paths: Iterable[str]) -> dict[str, pygit2.Oid]:
    ids = {}
    for path in paths:
        try:
            ids[path] = tree[path].id
        except (KeyError, ValueError):
            continue
    return ids


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
