"""Opening a pull request with a commit; closing, reopening and removing it. Authors and the repo's writers can close
pull requests, writers can remove them.

Removing a pull request deletes its ref and ends the guest's charge for git storage. `hub/guests/sweep.py` deletes large
files that are no longer needed, with their charge. Commits that are no longer reachable from a ref are not shown
(`hub/guests/marked_commits.py`).
"""

from typing import Literal

from hubgate.server.access.caller import Caller
from hubgate.server.accounts.account_locks import lock_account_by_id
from hubgate.server.accounts.model import User
from hubgate.server.errors import Conflict, Forbidden, NotFound
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.commits.commit import check_parent, prepare_commit, write_prepared
from hubgate.server.hub.commits.model import CommitRequest, CommitResult
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import store
from hubgate.server.hub.discussions.model import Discussion
from hubgate.server.hub.guests import store as guest_store
from hubgate.server.hub.guests.charges import assign_to_pull_request, charge_of, check_pull_requests, check_refs
from hubgate.server.hub.guests.marked_commits import mark
from hubgate.server.hub.repos import commit_counts
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.lookup import revision_not_found
from hubgate.server.hub.repos.model import DISCUSSIONS_DISABLED, REPO_GONE, Repo
from hubgate.server.hub.repos.refs import move_refs_in
from hubgate.server.hub.repos.transactions import lock_repo
from hubgate.server.ids import new_id
from hubgate.server.storage.database import Tx

MAX_TITLE_LENGTH = 200


NO_DISCUSSION = "Discussion or pull request not found in this repo."
CLOSED_BY_WRITER = "A user who may write to this repo closed this pull request. Only such users can reopen it."
# The statuses from which each status can be reached.
_PREVIOUS = {"closed": ("draft", "open"), "open": ("draft", "closed")}


async def commit_as_pull_request(
    repos: Repos, repo: Repo, caller: Caller, base: str, request: CommitRequest
) -> CommitResult:
    """Commit on top of the branch `base` as a new pull request. One transaction creates number, row, ref and event."""
    head = await repo_store.ref(repos.db, repo.id, base)
    if head is None or not base.startswith("refs/heads/"):
        raise revision_not_found(base)
    check_parent(request, head)
    user, charge = caller.user, charge_of(repo, caller.identity)
    if charge is not None:
        await check_pull_requests(repos.db, repos, repo, user.id)
        await check_refs(repos.db, repos, repo, user.id)
    prepared = await prepare_commit(repos, repo, head, request, charge)
    sha = await write_prepared(repos, repo, user, head, request, prepared)
    await mark(repos, repo, [sha])
    now = repos.clock()
    counts = await commit_counts.count_commits(repos, repo, [RefChange(base, head, sha)])

    async def unit(tx: Tx) -> int:
        if charge is not None:
            # The user is locked before the repo, as in all transactions.
            await lock_account_by_id(tx, user.id)
        num = await repo_store.next_discussion_number(tx, repo.id)
        if num is None:
            raise NotFound(REPO_GONE, code="RepoNotFound")
        if charge is not None:
            await check_pull_requests(tx, repos, repo, user.id)
            await check_refs(tx, repos, repo, user.id)
        discussion = Discussion(
            id=new_id(now),
            repo_id=repo.id,
            num=num,
            title=request.summary[:MAX_TITLE_LENGTH],
            description=request.description,
            status="open",
            base=base,
            author_id=user.id,
            created_at=now,
        )
        await store.add(tx, discussion)
        opened = [RefChange(discussion.ref, None, sha)]
        await move_refs_in(tx, repos, repo, opened, None, now, counts, by_guest=charge is not None)
        if charge is not None:
            await assign_to_pull_request(tx, repo.id, num, charge, now)
        return num

    write = repos.db.write_long if charge is not None and charge.needs_long_transaction else repos.db.write
    return CommitResult(sha, await write(unit))


async def set_status(
    repos: Repos, repo: Repo, discussion: Discussion, user: User, status: Literal["open", "closed"]
) -> None:
    async def unit(tx: Tx) -> None:
        found = await _lock_and_find(tx, repo, discussion.num)
        if found.status not in _PREVIOUS[status]:
            raise Conflict(f"The discussion or pull request is already {found.status}.")
        if status == "open" and found.base is not None:
            if await repo_store.ref(tx, repo.id, found.ref) is None:
                raise Conflict(f"The pull request cannot be reopened: {found.ref} was deleted.")
            # The limits on guests do not apply to writers.
            if found.status == "closed" and not await guest_store.is_writer(tx, repo.id, user.id):
                if repo.discussions_disabled:
                    raise Forbidden(DISCUSSIONS_DISABLED)
                if found.closed_by not in (None, user.id):
                    raise Forbidden(CLOSED_BY_WRITER)
                await check_pull_requests(tx, repos, repo, user.id)
        await store.set_status(tx, repo.id, found.num, status, user.id if status == "closed" else None)

    await repos.db.write(unit)


async def remove(repos: Repos, repo: Repo, discussion: Discussion) -> None:
    now = repos.clock()

    async def unit(tx: Tx) -> None:
        found = await _lock_and_find(tx, repo, discussion.num)
        await _drop_ref(tx, repos, repo, found, now, by_guest=False)
        # Charges that are pending or for replaced commits are stored under the negated number.
        for num in (found.num, -found.num):
            await guest_store.end_charges(tx, repo.id, num)
        await store.remove(tx, repo.id, found.num)

    # A pull request may have a hundred thousand files.
    await repos.db.write_long(unit)


async def delete_ref(repos: Repos, repo: Repo, discussion: Discussion, user: User) -> None:
    """Delete the ref of a closed pull request. Large files stay charged until they are deleted, and git storage until
    the pull request is removed: authors must not be able to free bytes that are still stored.
    """
    now = repos.clock()

    async def unit(tx: Tx) -> None:
        found = await _lock_and_find(tx, repo, discussion.num)
        if found.accepts_commits:
            raise Conflict("Close the pull request first.")
        by_guest = not await guest_store.is_writer(tx, repo.id, user.id)
        if not await _drop_ref(tx, repos, repo, found, now, by_guest=by_guest):
            raise NotFound(f"{found.ref} does not exist.", code="RevisionNotFound")
        await guest_store.release_file_charges(tx, repo.id, found.num)

    await repos.db.write_long(unit)


async def _lock_and_find(tx: Tx, repo: Repo, num: int) -> Discussion:
    """Lock the repo until the transaction ends and return the current discussion."""
    await lock_repo(tx, repo.id)
    found = await store.find(tx, repo.id, num)
    if found is None:
        raise NotFound(NO_DISCUSSION)
    return found


async def _drop_ref(tx: Tx, repos: Repos, repo: Repo, found: Discussion, now: int, *, by_guest: bool) -> bool:
    sha = await repo_store.ref(tx, repo.id, found.ref) if found.base is not None else None
    if sha is not None:
        dropped = [RefChange(found.ref, sha, None)]
        await move_refs_in(tx, repos, repo, dropped, None, now, {}, by_guest=by_guest)
    return sha is not None
