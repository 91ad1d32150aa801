"""Merging a pull request into its target branch.

The merge commit is written first; then one transaction moves the branch, if branch and pull request are still where the
merge found them, and marks the pull request as merged. If the branch has moved, the merge is repeated. If the pull
request has moved, the merge is rejected: its author must not be able to replace the reviewed commits.
"""

from msgspec.structs import replace

from hubgate.server import failpoint
from hubgate.server.access.caller import Caller
from hubgate.server.errors import Conflict, Forbidden, Unavailable
from hubgate.server.events.kinds import Kind
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import recording, store
from hubgate.server.hub.discussions.entries import store as entry_store
from hubgate.server.hub.discussions.entries.model import STATUS_CHANGE
from hubgate.server.hub.discussions.model import Discussion, check_comment
from hubgate.server.hub.discussions.notifications import notify
from hubgate.server.hub.git import merges
from hubgate.server.hub.git.merges import MergeConflict, TrialMerge
from hubgate.server.hub.git.writes import Author
from hubgate.server.hub.guests import store as guest_store
from hubgate.server.hub.guests.merged_files import use_merged_files
from hubgate.server.hub.repos import commit_counts
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.repos.refs import RefConflict, card_after, move_refs_in
from hubgate.server.jobs.caller import TOO_LONG, current_job_caller
from hubgate.server.storage.database import Tx

MAX_ATTEMPTS = 20
NOT_OPEN = {
    "draft": "This pull request is a draft. Publish it first: set its status to open.",
    "closed": "This pull request is closed. Reopen it first.",
    "merged": "This pull request is already merged.",
}
NEW_COMMITS = "This pull request has new commits, so it was not merged. Review them, then merge it."


async def merge(
    repos: Repos, repo: Repo, discussion: Discussion, caller: Caller, comment: str = "", head: str | None = None
) -> Discussion:
    """Merge an open pull request and return it. `head` is the commit that the caller reviewed, by default the current
    head. Raises Conflict if the pull request has another head, or if files conflict; the message then names the files.
    """
    comment = check_comment(comment) if comment.strip() else ""
    if discussion.base is None:
        raise Conflict("This is a discussion, not a pull request.")
    head = head or await repo_store.ref(repos.db, repo.id, discussion.ref)
    async with repos.branch_locks.on(repo.id, discussion.base):
        for _ in range(MAX_ATTEMPTS):
            merged = await _attempt(repos, repo, discussion.num, discussion.base, head, caller, comment)
            if merged is not None:
                repos.outbox.send_soon()
                return merged
    raise Unavailable("The branch changes faster than this pull request can be merged. Try again.")


async def _attempt(
    repos: Repos, repo: Repo, num: int, base: str, head: str | None, caller: Caller, comment: str
) -> Discussion | None:
    """Try to merge once; None if the branch was changed concurrently."""
    user, now = caller.user, repos.clock()

    async def read(tx: Tx) -> tuple[Discussion | None, str | None, str | None]:
        found = await store.find(tx, repo.id, num)
        ours = await repo_store.ref(tx, repo.id, base)
        return found, ours, await repo_store.ref(tx, repo.id, found.ref) if found else None

    found, ours, theirs = await repos.db.read(read)
    found = _require_open(found)
    if ours is None or theirs is None:
        raise Conflict(f"The pull request cannot be merged: {base if ours is None else found.ref} was deleted.")
    if theirs != head:
        raise Conflict(NEW_COMMITS)
    sha = await _write_merge(repos, repo, found, ours, theirs, Author.of_user(user.name, repos.base_url), now)
    change = RefChange(base, ours, sha)
    await use_merged_files(repos, repo, [change])
    card = await card_after(repos, repo, [change])
    counts = await commit_counts.count_commits(repos, repo, [change])

    async def unit(tx: Tx) -> Discussion | None:
        found = _require_open(await recording.lock_and_find(tx, repo, num))
        # The merge may have taken a while, and the caller may have lost write permission since it started.
        if not await guest_store.is_writer(tx, repo.id, user.id):
            raise Forbidden("You may no longer write to this repo.")
        if await repo_store.ref(tx, repo.id, found.ref) != theirs:
            raise Conflict(NEW_COMMITS)
        if await repo_store.ref(tx, repo.id, base) != ours:
            return None
        if comment:
            await recording.require_enabled(tx, repo)
            await recording.add_comment(tx, repos, repo, found, user.id, comment, None, now)
        merged = replace(found, status="merged", merge_sha=sha, updated_at=now)
        await store.update(tx, merged)
        await entry_store.add(tx, repo.id, num, STATUS_CHANGE, user.id, "merged", now)
        if sha != ours:
            await move_refs_in(tx, repos, repo, [change], card, now, counts)
        await recording.record(tx, repos, repo, Kind.DISCUSSION_UPDATE, merged, now, by_guest=False)
        await notify(tx, repos, repo, merged, user.id, "merged this pull request")
        return merged

    failpoint.hit("merge-before-move")
    try:
        return await repos.db.write(unit)
    except RefConflict:
        return None


def _require_open(found: Discussion | None) -> Discussion:
    if found is None:
        raise recording.not_found()
    if found.status != "open":
        raise Conflict(NOT_OPEN[found.status])
    return found


async def _write_merge(
    repos: Repos, repo: Repo, found: Discussion, ours: str, theirs: str, author: Author, now: int
) -> str:
    message = f"Merge pull request #{found.num}: {found.title}"
    folders = repos.folders
    try:
        async with repos.walks.acquire(current_job_caller.get().share_key, repo.id):
            seconds = repos.limits.merging_seconds
            return await merges.merge(folders.root, folders.of(repo.id), ours, theirs, message, author, now, seconds)
    except MergeConflict as conflict:
        files = ", ".join(conflict.conflicts) or "the two histories have no common commit"
        raise Conflict(f"The pull request conflicts with {found.base}: {files[:1000]}") from None


async def conflicts_of(repos: Repos, repo: Repo, found: Discussion) -> TrialMerge | None:
    """The conflicts of a pull request with its target branch; None if it is not open or has nothing to merge. Raises
    Unavailable if finding them takes too long.
    """
    if not found.accepts_commits or found.base is None:
        return None
    ours, theirs = [await repo_store.ref(repos.db, repo.id, name) for name in (found.base, found.ref)]
    if ours is None or theirs is None or ours == theirs:
        return None
    folder = repos.folders.of(repo.id)
    if merges.is_too_slow(folder, ours, theirs):
        raise Unavailable(TOO_LONG)
    async with repos.walks.acquire(current_job_caller.get().share_key, repo.id):
        return await merges.try_merge(repos.folders.root, folder, ours, theirs, repos.limits.merging_seconds)
