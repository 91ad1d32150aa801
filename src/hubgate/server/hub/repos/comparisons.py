"""What two revisions differ in: `base..head`; `base...head`, since their merge base; or one and its first parent."""

from msgspec import Struct

from hubgate.server.errors import NotFound
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import diffs, objects, raw_diffs
from hubgate.server.hub.repos import lookup
from hubgate.server.hub.repos.lookup import Revision
from hubgate.server.hub.repos.model import Repo
from hubgate.server.jobs.caller import current_job_caller


class Comparison(Struct, frozen=True):
    # A commit, or the empty tree.
    before: str
    head: Revision
    base: Revision | None = None

    @property
    def in_pull_request(self) -> bool:
        return self.head.in_pull_request or (self.base is not None and self.base.in_pull_request)


async def find(repos: Repos, repo: Repo, text: str) -> Comparison:
    """Parse a comparison. The name of a ref cannot contain two dots."""
    dots = next((dots for dots in ("...", "..") if dots in text), None)
    folder = repos.folders.of(repo.id)
    if dots is None:
        head = await lookup.revision(repos, repo, text)
        parents = await objects.parents_of(folder, head.sha)
        return Comparison(parents[0] if parents else diffs.EMPTY_TREE, head)
    base, head = [await lookup.revision(repos, repo, part) for part in text.split(dots, 1)]
    if dots == "..":
        return Comparison(base.sha, head, base)
    async with repos.walks.acquire(current_job_caller.get().share_key, repo.id):
        before = await diffs.merge_base(folder, base.sha, head.sha, repos.limits.merging_seconds)
    if before is None:
        raise NotFound("These revisions have no common ancestor.", code="RevisionNotFound")
    return Comparison(before, head, base)


async def diff(repos: Repos, repo: Repo, found: Comparison, *, raw: bool) -> str:
    folder = repos.folders.of(repo.id)
    # Each may take seconds, and `raw` lists all changed files before it can reject their number.
    async with repos.walks.acquire(current_job_caller.get().share_key, repo.id):
        if raw:
            return await raw_diffs.raw_diff(folder, found.before, found.head.sha)
        return await diffs.unified_diff(folder, found.before, found.head.sha, repos.limits.merging_seconds)
