"""The changes that a pull request proposes: from its merge base with the target branch to its head. After the merge,
the changes that were merged.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions.model import Discussion
from hubgate.server.hub.git import diffs, objects
from hubgate.server.hub.git.diffs import Changes
from hubgate.server.hub.git.history import is_ancestor
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import Repo
from hubgate.server.jobs.caller import current_job_caller


class CommitRange(Struct, frozen=True):
    before: str
    after: str


async def changes_of(repos: Repos, repo: Repo, found: Discussion, *, content: bool) -> Changes:
    """The changed files. With `content` changed lines are included, otherwise only the names of the files."""
    async with _walking(repos, repo):
        proposed = await _range_of(repos, repo, found)
    if proposed is None:
        return Changes()
    return await diffs.changes_between(repos.folders.of(repo.id), proposed.before, proposed.after, content=content)


async def unified_diff(repos: Repos, repo: Repo, found: Discussion) -> str:
    async with _walking(repos, repo):
        proposed = await _range_of(repos, repo, found)
        if proposed is None:
            return ""
        folder, seconds = repos.folders.of(repo.id), repos.limits.merging_seconds
        return await diffs.unified_diff(folder, proposed.before, proposed.after, seconds)


@asynccontextmanager
async def _walking(repos: Repos, repo: Repo) -> AsyncIterator[None]:
    """Limit concurrent git programs."""
    async with repos.walks.acquire(current_job_caller.get().share_key, repo.id):
        yield


async def _range_of(repos: Repos, repo: Repo, found: Discussion) -> CommitRange | None:
    """The range of commits; None if a ref was deleted or the pull request has no commits."""
    if found.base is None:
        return None
    head = await repo_store.ref(repos.db, repo.id, found.ref)
    target = await repo_store.ref(repos.db, repo.id, found.base)
    folder = repos.folders.of(repo.id)
    if found.merge_sha is not None:
        seconds = repos.limits.merging_seconds
        # The commits may have been removed from the branch, by a squash for example, and from the pull request.
        if head is None and (target is None or not await is_ancestor(folder, target, found.merge_sha, seconds=seconds)):
            return None
        parents = await objects.parents_of(folder, found.merge_sha)
        # Without commits, `merge_sha` is the head of the branch, which may be the merge of another pull request.
        if len(parents) != 2 or head not in (None, parents[1]):
            return None
        target, head = parents
    if head is None or target is None or head == target:
        return None
    before = await diffs.merge_base(folder, target, head, repos.limits.merging_seconds)
    return CommitRange(before or target, head) if before != head else None
