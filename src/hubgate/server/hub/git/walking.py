"""From commits to their parents, newest first, as `git log` goes. A walk knows what it would visit next, so that
another one can go on from there without repeating the way.
"""

import heapq
from collections.abc import Iterable, Iterator
from itertools import count

import pygit2

from hubgate.server.jobs.job import checkpoint


class NotACommit(ValueError):
    """A walk was to start at something that is not a commit of this repo."""


class Walk:
    """By date; of those with the same date the one found first. Each commit is visited once.

    libgit2's own walk keeps every commit it has parsed, and sorts nothing without having read all of it. This one keeps
    the ids it has visited and the commits it will visit next.

    To go on elsewhere takes `ahead` and `passed`. Where no commit is older than its parents, those that were visited
    can only be met again among those of the same second; they are in `passed`. In one straight line none is.
    """

    def __init__(self, repo: pygit2.Repository, starts: Iterable[str], passed: Iterable[str] = ()) -> None:
        self._repo = repo
        self._order = count()
        self._next: list[tuple[int, int, pygit2.Commit]] = []
        self._passed = [pygit2.Oid(hex=sha) for sha in passed]
        self._known: set[pygit2.Oid] = set(self._passed)
        for start in starts:
            try:
                self._add(pygit2.Oid(hex=start))
            except (KeyError, ValueError):
                raise NotACommit(start) from None
        self._second = self._next[0][0] if self._next else 0
        self._is_line = len(self._next) <= 1 and not self._passed

    def __iter__(self) -> Iterator[pygit2.Commit]:
        while self._next:
            checkpoint()
            second, _, commit = heapq.heappop(self._next)
            if second != self._second:
                self._second, self._passed = second, []
            self._passed.append(commit.id)
            # First, so that whoever stops here finds the parents among those to come.
            for parent in commit.parent_ids:
                checkpoint()
                self._add(parent)
            self._is_line = self._is_line and len(self._next) <= 1
            yield commit

    @property
    def ahead(self) -> list[str]:
        """What comes next, in order."""
        return [str(commit.id) for _, _, commit in sorted(self._next)]

    @property
    def passed(self) -> list[str]:
        is_over = self._is_line or not self._next or self._next[0][0] != self._second
        return [] if is_over else list(map(str, self._passed))

    def _add(self, sha: pygit2.Oid) -> None:
        if sha in self._known:
            return
        found = self._repo[sha]
        if not isinstance(found, pygit2.Commit):
            raise NotACommit(str(sha))
        self._known.add(sha)
        heapq.heappush(self._next, (-found.commit_time, next(self._order), found))
