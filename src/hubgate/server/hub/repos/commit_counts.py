"""The number of commits reachable from each ref, counted when the ref moves and stored with it.

The number depends on the commit alone. Counting starts from a ref with a stored number, if possible. A count that takes
too long stays unknown (NULL) until the background process has finished it.
"""

import logging
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import pygit2

from hubgate.server.errors import NotFound, Unavailable
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import objects, program
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import MAIN, Repo
from hubgate.server.jobs.caller import current_job_caller
from hubgate.server.jobs.job import checkpoint

log = logging.getLogger("hubgate.git")

# Commits of a linear history that are followed in process rather than by the git program.
MAX_LINEAR_COMMITS = 1_000
# Refs per step of the background process.
REFS_PER_STEP = 100
EVERY_SECONDS = 30.0
COUNT_SECONDS = 10 * 60.0

Counts = Mapping[str, int]


async def count_commits(repos: Repos, repo: Repo, changes: Sequence[RefChange]) -> dict[str, int]:
    """The number of commits reachable from each new id, for those counted within `limits.counting_seconds`."""
    new = {change.new_sha: change.old_sha for change in changes if change.new_sha is not None}
    if not new:
        return {}
    known = await repos.db.read_long(lambda tx: store.known_counts(tx, repo.id))
    head = await store.ref(repos.db, repo.id, MAIN)
    bases = {sha: [base for base in (old, head) if base in known] for sha, old in new.items()}
    return await _count(repos, repo.id, bases, known, repos.limits.counting_seconds)


async def _count(
    repos: Repos, repo_id: str, bases: Mapping[str, Sequence[str | None]], known: Counts, seconds: float
) -> dict[str, int]:
    folder, deadline = repos.folders.of(repo_id), monotonic() + seconds
    found = {sha: known[sha] for sha in bases if sha in known}
    try:
        found |= await _count_linear_histories(folder, [sha for sha in bases if sha not in found], known)
        for sha, candidates in bases.items():
            if sha not in found and monotonic() < deadline:
                base = next(iter(candidates), None)
                found[sha] = await _count_by_program(repos, repo_id, sha, base, known, deadline - monotonic())
    except (Unavailable, NotFound, program.GitFailed, KeyError, pygit2.GitError) as error:
        log.info("the commits of a ref will be counted later: %s", error)
    return found


async def _count_linear_histories(folder: Path, shas: Iterable[str], known: Counts) -> dict[str, int]:
    """Count the commits of histories that are linear down to a known count or the root commit. A tag that does not
    point to a commit counts as 0.
    """

    def work(repo: pygit2.Repository) -> dict[str, int]:
        found: dict[str, int] = {}
        all_known = ChainMap(found, dict(known))
        for sha in shas:
            number = _count_linear(repo, sha, all_known)
            if number is not None:
                found[sha] = number
        return found

    return await objects.read_repository(folder, work)


def _count_linear(repo: pygit2.Repository, sha: str, known: Counts) -> int | None:
    try:
        commit = repo[sha].peel(pygit2.Commit)
    except (KeyError, ValueError, pygit2.GitError):
        return 0
    for visited in range(MAX_LINEAR_COMMITS):
        checkpoint()
        if (number := known.get(str(commit.id))) is not None:
            return visited + number
        parents = commit.parent_ids
        if len(parents) != 1:
            return visited + 1 if not parents else None
        parent = repo[parents[0]]
        if not isinstance(parent, pygit2.Commit):
            return None
        commit = parent
    return None


async def _count_by_program(
    repos: Repos, repo_id: str, sha: str, base: str | None, known: Counts, seconds: float
) -> int:
    arguments = ["--left-right", f"{base}...{sha}"] if base else [sha]
    command = ["rev-list", "--count", *arguments, "--"]
    async with repos.walks.acquire(current_job_caller.get().share_key, repo_id):
        output = await program.run(command, repos.folders.of(repo_id), seconds=seconds, low_priority=True)
    if base is None:
        return int(output)
    behind, ahead = map(int, output.split())
    return known[base] - behind + ahead


@dataclass
class CommitCounter:
    """Counts the commits of refs that have no stored number yet."""

    repos: Repos
    _after: tuple[str, str] = ("", "")

    async def step(self) -> bool:
        """Count one batch of refs; return whether there may be more. A failed count is retried in the next round."""
        rows = await self.repos.db.read_long(lambda tx: store.uncounted_refs(tx, self._after, REFS_PER_STEP))
        for repo_id, name, sha in rows:
            await self._count_ref(repo_id, name, sha)
        self._after = rows[-1][:2] if len(rows) == REFS_PER_STEP else ("", "")
        return len(rows) == REFS_PER_STEP

    async def _count_ref(self, repo_id: str, name: str, sha: str) -> None:
        known = await self.repos.db.read_long(lambda tx: store.known_counts(tx, repo_id))
        head = await store.ref(self.repos.db, repo_id, MAIN)
        base = {sha: [head] if head in known else []}
        number = (await _count(self.repos, repo_id, base, known, COUNT_SECONDS)).get(sha)
        if number is not None:
            await self.repos.db.write(lambda tx: store.set_count(tx, repo_id, name, sha, number))
