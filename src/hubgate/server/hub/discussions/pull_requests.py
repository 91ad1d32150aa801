"""Opening a pull request with a commit."""

from hubgate.server.access.caller import Caller
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.commits.commit import check_parent, prepare_commit, write_prepared
from hubgate.server.hub.commits.model import CommitRequest, CommitResult
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import opening, recording
from hubgate.server.hub.discussions.entries import store as entry_store
from hubgate.server.hub.discussions.entries.model import Commit
from hubgate.server.hub.discussions.model import MAX_TEXT_LENGTH, Discussion, title_of_commit
from hubgate.server.hub.guests.charges import assign_to_pull_request, charge_of, check_pull_requests, check_refs
from hubgate.server.hub.guests.marked_commits import mark
from hubgate.server.hub.repos import commit_counts
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.lookup import revision_not_found
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.repos.refs import move_refs_in
from hubgate.server.ids import new_id
from hubgate.server.storage.database import Tx


async def commit_as_pull_request(
    repos: Repos, repo: Repo, caller: Caller, base: str, request: CommitRequest
) -> CommitResult:
    """Commit on top of the branch `base` as a new pull request. One transaction creates number, row, ref and events."""
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
        num = await opening.next_number(tx, repo, charge)
        await recording.require_enabled(tx, repo)
        if charge is not None:
            await check_pull_requests(tx, repos, repo, user.id)
            await check_refs(tx, repos, repo, user.id)
        discussion = Discussion(
            id=new_id(now),
            repo_id=repo.id,
            num=num,
            title=title_of_commit(request.summary),
            status="open",
            base=base,
            author_id=user.id,
            created_at=now,
            updated_at=now,
        )
        description = request.description[:MAX_TEXT_LENGTH]
        await opening.add_in(tx, repos, repo, discussion, description, by_guest=charge is not None)
        await entry_store.add_commits(tx, repo.id, num, user.id, [Commit(sha, discussion.title)], now)
        opened = [RefChange(discussion.ref, None, sha)]
        await move_refs_in(tx, repos, repo, opened, None, now, counts, by_guest=charge is not None)
        if charge is not None:
            # The description is a part of the commit's message, which is charged already.
            await assign_to_pull_request(tx, repo.id, num, charge, now)
        return num

    write = repos.db.write_long if charge is not None and charge.needs_long_transaction else repos.db.write
    num = await write(unit)
    repos.outbox.send_soon()
    return CommitResult(sha, num)
