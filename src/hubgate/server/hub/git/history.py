"""The history of a commit: pages, counts and last changes of paths.

A walk goes from commits to their parents, newest first, like `git log`. It knows its next commits, so that another walk
can continue from there without repeating anything.
"""

import contextlib
import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from time import monotonic

import pygit2
from msgspec import Struct

from hubgate.server.hub.git import program
from hubgate.server.hub.git.objects import SizedCache, read_repository
from hubgate.server.jobs.job import checkpoint

# The search for the last change of a path stops after this many commits and reports the oldest commit it visited.
MAX_SEARCHED_COMMITS = 2_000
# The same limit in seconds: all callers share a few threads.
SEARCH_SECONDS = 2.0
WALK_SECONDS = 5.0
# The maximum number of commits counted while a client waits.
MAX_COUNTED = 2_000
# Bytes. Fits the longest summary and description accepted over HTTP, at four bytes per character; a pushed message may
# be longer.
MAX_MESSAGE_BYTES = 272 * 1024
MAX_NAME_BYTES = 1_000
# Approximate characters of messages on one page. A page ends at this limit, and its cursor continues from there.
MAX_PAGE_CHARACTERS = 1024 * 1024
# The end of the year 9999, the last that a date can represent. A pushed commit may claim any time.
_MAX_TIME = 253_402_300_799


class NotACommit(ValueError):
    """The start or a parent in a walk is not a commit of this repo."""


class Walk:
    """Visits each commit once, ordered by date; commits of the same date in the order they were found.

    libgit2's walk retains every commit it has parsed, and sorts only after reading all of them. This walk stores the
    ids of visited commits and the commits it will visit next.

    `pending` and `visited` are enough to continue in another walk. If no commit is older than its parents, a visited
    commit can only be met again among commits of the same second; those are in `visited`. In a linear history `visited`
    is empty.
    """

    def __init__(self, repo: pygit2.Repository, starts: Iterable[str], visited: Iterable[str] = ()) -> None:
        self._repo = repo
        self._order = count()
        self._heap: list[tuple[int, int, pygit2.Commit]] = []
        self._visited = [pygit2.Oid(hex=sha) for sha in visited]
        self._known: set[pygit2.Oid] = set(self._visited)
        for start in starts:
            try:
                self._add(pygit2.Oid(hex=start))
            except (KeyError, ValueError):
                raise NotACommit(start) from None
        self._second = self._heap[0][0] if self._heap else 0
        self._is_linear = len(self._heap) <= 1 and not self._visited

    def __iter__(self) -> Iterator[pygit2.Commit]:
        while self._heap:
            checkpoint()
            second, _, commit = heapq.heappop(self._heap)
            if second != self._second:
                self._second, self._visited = second, []
            self._visited.append(commit.id)
            # Before the yield, so that `pending` has the parents if the caller stops here.
            for parent in commit.parent_ids:
                checkpoint()
                self._add(parent)
            self._is_linear = self._is_linear and len(self._heap) <= 1
            yield commit

    @property
    def pending(self) -> list[str]:
        """The next commits, in order."""
        return [str(commit.id) for _, _, commit in sorted(self._heap)]

    @property
    def visited(self) -> list[str]:
        """The visited commits that another walk could meet again: those of the same second as the next commit."""
        is_complete = self._is_linear or not self._heap or self._heap[0][0] != self._second
        return [] if is_complete else list(map(str, self._visited))

    def _add(self, sha: pygit2.Oid) -> None:
        if sha in self._known:
            return
        found = self._repo[sha]
        if not isinstance(found, pygit2.Commit):
            raise NotACommit(str(sha))
        self._known.add(sha)
        heapq.heappush(self._heap, (-found.commit_time, next(self._order), found))


class Commit(Struct, frozen=True):
    sha: str
    title: str
    message: str
    # Seconds since the epoch.
    time: int
    author: str


class CommitPage(Struct, frozen=True):
    commits: list[Commit]
    # Commits the walk would visit next, in order; empty at the end of the history.
    pending: list[str]
    # Commits the walk must not visit again.
    visited: list[str]


async def is_ancestor(folder: Path, sha: str | None, ancestor: str | None, *, seconds: float = WALK_SECONDS) -> bool:
    """Whether the commit `ancestor` is in the history of `sha`."""
    if sha is None or ancestor is None:
        return ancestor is None
    command = ["rev-list", "--max-count=1", ancestor, "--not", sha, "--"]
    return not await program.run(command, folder, seconds=seconds, low_priority=True)


async def page(folder: Path, starts: Sequence[str], skip: int, limit: int, visited: Sequence[str] = ()) -> CommitPage:
    """A page of commits, newest first, from `starts` on. The cost grows with the commits skipped and shown, not with
    the length of the history. The page has fewer than `limit` commits where messages are long. Raises NotACommit if an
    id in `starts` is not a commit.
    """

    def work(repo: pygit2.Repository) -> CommitPage:
        walk = Walk(repo, starts, visited)
        commits = list(_up_to_text_limit(islice(walk, skip, skip + limit)))
        return CommitPage(commits, walk.pending, walk.visited)

    return await read_repository(folder, work)


async def commits_beyond(folder: Path, starts: Sequence[str], skip: int, seconds: float) -> list[str]:
    """The commits that follow the first `skip` commits, found by the git program: it runs on another CPU, retains no
    memory and can be killed when the client disconnects.
    """
    if not await are_commits(folder, starts):
        raise NotACommit(starts[0])
    command = ["rev-list", "--boundary", f"--max-count={skip}", "--stdin"]
    stdin = "".join(f"{start}\n" for start in starts).encode()
    pending: list[str] = []
    async with contextlib.aclosing(program.lines(command, folder, stdin, seconds)) as printed:
        async for lines in printed:
            pending += [line[1:].decode() for line in lines if line.startswith(b"-")]
    return pending


async def are_commits(folder: Path, shas: Sequence[str]) -> bool:
    return await read_repository(folder, lambda repo: all(isinstance(repo.get(sha), pygit2.Commit) for sha in shas))


async def read_commit(folder: Path, commit: str) -> Commit:
    return (await page(folder, [commit], 0, 1)).commits[0]


# The ancestors of a commit never change, and each page of a history needs their number. -1 means too many to count.
_COUNTED: SizedCache[tuple[str, str], int] = SizedCache(max_bytes=2 * 1024 * 1024, max_entry_bytes=8)


async def count_commits(folder: Path, commit: str) -> int | None:
    """Count the commits reachable from a commit; None if more than MAX_COUNTED. Most refs have a stored count."""
    key = (str(folder), commit)
    found = _COUNTED.get(key)
    if found is None:
        found = await read_repository(
            folder, lambda repo: sum(1 for _ in islice(Walk(repo, [commit]), MAX_COUNTED + 1))
        )
        found = found if found <= MAX_COUNTED else -1
        _COUNTED.add(key, found, 8)
    return found if found >= 0 else None


async def last_changes(
    folder: Path,
    commit: str,
    paths: Sequence[str],
    max_commits: int = MAX_SEARCHED_COMMITS,
    seconds: float = SEARCH_SECONDS,
) -> dict[str, Commit]:
    """For each path the newest commit that changed it. Paths not found in time get the oldest commit visited."""

    def work(repo: pygit2.Repository) -> dict[str, Commit]:
        found, oldest = _changes(islice(Walk(repo, [commit]), max_commits), paths, seconds)
        return {path: commit_of_object(oldest) for path in paths if oldest} | found

    return await read_repository(folder, work)


_Changes = dict[str, Commit]
_RECENT: SizedCache[tuple[str, str, Sequence[str], int], _Changes] = SizedCache(
    max_bytes=4 * 1024 * 1024, max_entry_bytes=256 * 1024
)


async def recent_changes(folder: Path, commit: str, paths: Sequence[str], max_commits: int) -> _Changes:
    """For each path the newest commit that changed it, if that is among the latest `max_commits` commits. Cached: every
    view of a folder needs it, and it takes longer than the rest of the page.
    """
    key = (str(folder), commit, tuple(paths), max_commits)
    found = _RECENT.get(key)
    if found is None:
        started = monotonic()
        found = await read_repository(
            folder, lambda repo: _changes(islice(Walk(repo, [commit]), max_commits), paths, SEARCH_SECONDS)[0]
        )
        # A search that ran out of time may find more at another time.
        if monotonic() - started < SEARCH_SECONDS:
            texts = (len(path) + len(change.title) + len(change.message) for path, change in found.items())
            _RECENT.add(key, found, sum(map(len, paths)) + sum(texts) + 400 * len(found))
    return found


def _changes(
    walk: Iterable[pygit2.Commit], paths: Sequence[str], seconds: float
) -> tuple[dict[str, Commit], pygit2.Commit | None]:
    """The last change of each path that was found, and the last commit visited."""
    pending, found, oldest = set(paths), dict[str, Commit](), None
    deadline = monotonic() + seconds
    for current in walk:
        oldest = current
        changed = _changed_by(current)
        here = pending if changed is None else pending & changed
        if here:
            found |= dict.fromkeys(here, commit_of_object(current))
            pending = pending - here
        if not pending or monotonic() > deadline:
            break
    return found, oldest


def _changed_by(commit: pygit2.Commit) -> set[str] | None:
    """The files and folders in which the commit differs from every parent: a merge counts as a change of a path only if
    no parent had this version. None, meaning all paths, if the commit has no parent.
    """
    changed: set[str] | None = None
    for parent in commit.parents:
        diff = parent.tree.diff_to_tree(commit.tree) if parent.tree_id != commit.tree_id else ()
        differing = {path for delta in _deltas(diff) for path in _with_folders(delta)}
        changed = differing if changed is None else changed & differing
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


def _up_to_text_limit(walk: Iterable[pygit2.Commit]) -> Iterator[Commit]:
    """Yield at least one commit, until MAX_PAGE_CHARACTERS is exceeded. The walk stops at the last commit yielded."""
    size = 0
    for found in walk:
        commit = commit_of_object(found)
        yield commit
        size += len(commit.title) + len(commit.message) + len(commit.author)
        if size > MAX_PAGE_CHARACTERS:
            return


def commit_of_object(commit: pygit2.Commit) -> Commit:
    """Convert a commit, truncating a message or name that is too long."""
    message = _text(commit, commit.raw_message[:MAX_MESSAGE_BYTES]).strip("\n")
    title, _, rest = message.partition("\n")
    time = min(max(commit.commit_time, 0), _MAX_TIME)
    return Commit(
        str(commit.id), title.strip(), rest.strip("\n"), time, _text(commit, commit.author.raw_name[:MAX_NAME_BYTES])
    )


def _text(commit: pygit2.Commit, raw: bytes) -> str:
    """Decode text in the encoding that the commit claims, if it is known. Some encodings yield lone surrogates."""
    try:
        text = raw.decode(commit.message_encoding or "utf-8", "replace")
    except (LookupError, ValueError):
        text = raw.decode(errors="replace")
    return text.encode(errors="replace").decode()
