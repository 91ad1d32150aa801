"""Walking the history of a commit."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import monotonic

import pygit2

from hubgate.server.hub.git import program
from hubgate.server.hub.git.objects import opened
from hubgate.server.hub.git.recent import Recent
from hubgate.server.hub.git.walking import NotACommit, Walk

# Beyond this many commits the search for the last change of a path ends, and the oldest one looked at is named.
DEEPEST = 2_000
# And after this many seconds: every caller waits for the same few threads.
LONGEST_SEARCH = 2.0
LONGEST_WALK = 5.0
# A history is counted so far while its reader waits.
MOST_COUNTED = 2_000
# Bytes. The longest summary and description that are accepted over HTTP fit, in characters of four bytes each; a pushed
# commit may have any.
LONGEST_MESSAGE = 272 * 1024
LONGEST_NAME = 1_000
# Bytes of messages on one page, about. The page ends there: whoever wants the rest follows its cursor.
MOST_TEXT = 1024 * 1024
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


@dataclass(frozen=True, slots=True)
class Page:
    commits: list[Commit]
    # What the walk would visit next, in order; nothing at its end. Then what it must not visit again.
    ahead: list[str]
    passed: list[str]


async def leads_to(folder: Path, sha: str | None, former: str | None, *, seconds: float = LONGEST_WALK) -> bool:
    """Whether the commit `former` is in the history of `sha`."""
    if sha is None or former is None:
        return former is None
    command = ["rev-list", "--max-count=1", former, "--not", sha, "--"]
    return not await program.run(command, folder, seconds=seconds, gently=True)


async def page(folder: Path, starts: Sequence[str], skip: int, most: int, passed: Sequence[str] = ()) -> Page:
    """Newest first, from `starts` on: it costs what is skipped and shown, however long the history is. There are fewer
    than `most` where messages are long. NotACommit if one of `starts` is not a commit.
    """

    def work(repo: pygit2.Repository) -> Page:
        walk = Walk(repo, starts, passed)
        commits = list(_fitting(islice(walk, skip, skip + most)))
        return Page(commits, walk.ahead, walk.passed)

    return await opened(folder, work)


async def beyond(folder: Path, starts: Sequence[str], skip: int, seconds: float) -> list[str]:
    """What comes after the first `skip` commits, found by the git program: it uses another processor, leaves no memory
    behind and ends at once when it is not wanted any more.
    """
    if not await are_commits(folder, starts):
        raise NotACommit(starts[0])
    command = ["rev-list", "--boundary", f"--max-count={skip}", "--stdin"]
    given = "".join(f"{start}\n" for start in starts).encode()
    ahead: list[str] = []
    async with contextlib.aclosing(program.lines(command, folder, given, seconds)) as printed:
        async for lines in printed:
            ahead += [line[1:].decode() for line in lines if line.startswith(b"-")]
    return ahead


async def are_commits(folder: Path, shas: Sequence[str]) -> bool:
    return await opened(folder, lambda repo: all(isinstance(repo.get(sha), pygit2.Commit) for sha in shas))


async def newest(folder: Path, commit: str) -> Commit:
    return (await page(folder, [commit], 0, 1)).commits[0]


# What leads to a commit never changes, and each page of a history asks for its length. -1 is for too many.
_COUNTED: Recent[tuple[str, str], int] = Recent(most=2 * 1024 * 1024, most_each=8)


async def count(folder: Path, commit: str) -> int | None:
    """None if there are more than MOST_COUNTED. Refs have their number stored; this is for all other commits."""
    key = (str(folder), commit)
    found = _COUNTED.get(key)
    if found is None:
        found = await opened(folder, lambda repo: sum(1 for _ in islice(Walk(repo, [commit]), MOST_COUNTED + 1)))
        found = found if found <= MOST_COUNTED else -1
        _COUNTED.keep(key, found, 8)
    return found if found >= 0 else None


async def last_changes(
    folder: Path, commit: str, paths: Sequence[str], deepest: int = DEEPEST, seconds: float = LONGEST_SEARCH
) -> dict[str, Commit]:
    """For each path the newest commit in which it became what it is."""

    def work(repo: pygit2.Repository) -> dict[str, Commit]:
        found, oldest = _changes(islice(Walk(repo, [commit]), deepest), paths, seconds)
        return {path: described(oldest) for path in paths if oldest} | found

    return await opened(folder, work)


async def recent_changes(folder: Path, commit: str, paths: Sequence[str], deepest: int) -> dict[str, Commit]:
    """The same, as far as it is found among the latest `deepest` commits."""

    def work(repo: pygit2.Repository) -> dict[str, Commit]:
        return _changes(islice(Walk(repo, [commit]), deepest), paths, LONGEST_SEARCH)[0]

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


def _fitting(walk: Iterable[pygit2.Commit]) -> Iterator[Commit]:
    """At least one. The walk does not go beyond the last of them."""
    size = 0
    for found in walk:
        commit = described(found)
        yield commit
        size += len(commit.title) + len(commit.message) + len(commit.author)
        if size > MOST_TEXT:
            return


def described(commit: pygit2.Commit) -> Commit:
    """A message or name that is too long is cut off."""
    message = _text(commit, commit.raw_message[:LONGEST_MESSAGE]).strip("\n")
    title, _, rest = message.partition("\n")
    time = min(max(commit.commit_time, 0), _LATEST)
    return Commit(
        str(commit.id), title.strip(), rest.strip("\n"), time, _text(commit, commit.author.raw_name[:LONGEST_NAME])
    )


def _text(commit: pygit2.Commit, raw: bytes) -> str:
    """In the encoding the commit claims, if there is one of that name; some of them make halves of characters."""
    try:
        text = raw.decode(commit.message_encoding or "utf-8", "replace")
    except (LookupError, ValueError):
        text = raw.decode(errors="replace")
    return text.encode(errors="replace").decode()
