"""Walks from commits to their parents, newest first, like `git log`. A walk knows its next commits, so that another
walk can continue from there without repeating anything.
"""

import heapq
from collections.abc import Iterable, Iterator
from itertools import count

import pygit2

from hubgate.server.jobs.job import checkpoint


class NotACommit(ValueError):
    """The start or a parent in a walk is not a commit of this repo."""


class Walk:
    """Visits each commit once, ordered by date; commits of the same date in the order they were found.

    libgit2's walk retains every commit it has parsed, and sorts only after reading all of them. This walk stores the
    ids of visited commits and the commits it will visit next.

    `ahead` and `passed` are enough to continue in another walk. If no commit is older than its parents, a visited
    commit can only be met again among commits of the same second; those are in `passed`. In a linear history `passed`
    is empty.
    """

    def __init__(self, repo: pygit2.Repository, starts: Iterable[str], passed: Iterable[str] = ()) -> None:
        self._repo = repo
        self._order = count()
        self._heap: list[tuple[int, int, pygit2.Commit]] = []
        self._passed = [pygit2.Oid(hex=sha) for sha in passed]
        self._known: set[pygit2.Oid] = set(self._passed)
        for start in starts:
            try:
                self._add(pygit2.Oid(hex=start))
            except (KeyError, ValueError):
                raise NotACommit(start) from None
        self._second = self._heap[0][0] if self._heap else 0
        self._is_line = len(self._heap) <= 1 and not self._passed

    def __iter__(self) -> Iterator[pygit2.Commit]:
        while self._heap:
            checkpoint()
            second, _, commit = heapq.heappop(self._heap)
            if second != self._second:
                self._second, self._passed = second, []
            self._passed.append(commit.id)
            # Before the yield, so that `ahead` has the parents if the caller stops here.
            for parent in commit.parent_ids:
                checkpoint()
                self._add(parent)
            self._is_line = self._is_line and len(self._heap) <= 1
            yield commit

    @property
    def ahead(self) -> list[str]:
        """The next commits, in order."""
        return [str(commit.id) for _, _, commit in sorted(self._heap)]

    @property
    def passed(self) -> list[str]:
        is_complete = self._is_line or not self._heap or self._heap[0][0] != self._second
        return [] if is_complete else list(map(str, self._passed))

    def _add(self, sha: pygit2.Oid) -> None:
        if sha in self._known:
            return
        found = self._repo[sha]
        if not isinstance(found, pygit2.Commit):
            raise NotACommit(str(sha))
        self._known.add(sha)
        heapq.heappush(self._heap, (-found.commit_time, next(self._order), found))
