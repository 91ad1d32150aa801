"""Opening a pull request with a commit."""

from hubgate.server.access.caller import Caller
from hubgate.server.accounts.account_locks import lock_by_id
from hubgate.server.errors import NotFound
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.commits.commit import check_parent, commit_result, written
from hubgate.server.hub.commits.model import CommitRequest, Committed
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import store
from hubgate.server.hub.discussions.model import Discussion
from hubgate.server.hub.guests.charges import charge_of, check_pull_requests, check_refs, take_up
from hubgate.server.hub.guests.marked_commits import mark
from hubgate.server.hub.repos import commit_counts
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import REPO_GONE, Repo
from hubgate.server.hub.repos.refs import moved_in
from hubgate.server.ids import new_id
from hubgate.server.storage.database import Tx

LONGEST_TITLE = 200


async def commit_as_pull_request(
    repos: Repos, repo: Repo, caller: Caller, base: str, request: CommitRequest
) -> Committed:
    """Commit on top of the branch `base` as a new pull request. One transaction creates number, row, ref and event."""
    head = await repo_store.ref(repos.db, repo.id, base)
    if head is None or not base.startswith("refs/heads/"):
        raise NotFound(f"Invalid rev id: {base}", code="RevisionNotFound")
    check_parent(request, head)
    user, charge = caller.user, charge_of(repo, caller.identity)
    if charge is not None:
        await check_pull_requests(repos.db, repos, repo, user.id)
        await check_refs(repos.db, repos, repo, user.id)
    on_disk = await commit_result(repos, repo, head, request, charge)
    sha = await written(repos, repo, user, head, request, on_disk)
    await mark(repos, repo, [sha])
    now = repos.clock()
    counts = await commit_counts.counted(repos, repo, [RefChange(base, head, sha)])

    async def unit(tx: Tx) -> int:
        if charge is not None:
            # Lock the user before the repo, as everywhere.
            await lock_by_id(tx, user.id)
        num = await repo_store.next_discussion(tx, repo.id)
        if num is None:
            raise NotFound(REPO_GONE, code="RepoNotFound")
        if charge is not None:
            await check_pull_requests(tx, repos, repo, user.id)
            await check_refs(tx, repos, repo, user.id)
        discussion = Discussion(
            id=new_id(now),
            repo_id=repo.id,
            num=num,
            title=request.summary[:LONGEST_TITLE],
            description=request.description,
            status="open",
            base=base,
            author_id=user.id,
            created_at=now,
        )
        await store.add(tx, discussion)
        opened = [RefChange(discussion.ref, None, sha)]
        await moved_in(tx, repos, repo, opened, None, now, counts, by_guest=charge is not None)
        if charge is not None:
            await take_up(tx, repo.id, num, charge, now)
        return num

    write = repos.db.write_long if charge is not None and charge.is_long else repos.db.write
    return Committed(sha, await write(unit))
