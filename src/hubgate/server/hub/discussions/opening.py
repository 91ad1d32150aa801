"""Opening a discussion, or a pull request without commits, which is a draft until it is published."""

from hubgate.server.access.caller import Caller
from hubgate.server.accounts.account_locks import lock_account_by_id
from hubgate.server.errors import Conflict, NotFound
from hubgate.server.events.kinds import Kind
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import recording, store
from hubgate.server.hub.discussions.entries import store as entry_store
from hubgate.server.hub.discussions.entries.model import COMMENT
from hubgate.server.hub.discussions.model import Discussion, check_text, check_title
from hubgate.server.hub.discussions.notifications import notify
from hubgate.server.hub.discussions.search_documents import index_title
from hubgate.server.hub.guests.charges import (
    Charge,
    charge_of,
    charge_text,
    check_discussions,
    check_pull_requests,
    check_refs,
)
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import MAIN, REPO_GONE, Repo
from hubgate.server.hub.repos.refs import move_refs_in
from hubgate.server.ids import new_id
from hubgate.server.storage.database import Tx


async def open_discussion(repos: Repos, repo: Repo, caller: Caller, title: str, description: str) -> Discussion:
    title, description = check_title(title), check_text(description)
    charge, now = charge_of(repo, caller.identity), repos.clock()

    async def unit(tx: Tx) -> Discussion:
        num = await next_number(tx, repo, charge)
        await recording.require_enabled(tx, repo)
        if charge is not None:
            await check_discussions(tx, repos, repo, charge.user_id)
            await charge_text(tx, repos, repo, charge, num, len(description.encode()), now)
        discussion = Discussion(new_id(now), repo.id, num, title, "open", None, caller.user.id, now, updated_at=now)
        await add_in(tx, repos, repo, discussion, description, by_guest=charge is not None)
        return discussion

    write = repos.db.write if charge is None else repos.db.write_long
    opened = await write(unit)
    repos.outbox.send_soon()
    return opened


async def open_pull_request(repos: Repos, repo: Repo, caller: Caller, title: str, description: str) -> Discussion:
    """Open a pull request against main whose ref is at the head of main."""
    title, description = check_title(title), check_text(description)
    charge, now = charge_of(repo, caller.identity), repos.clock()

    async def unit(tx: Tx) -> Discussion:
        num = await next_number(tx, repo, charge)
        await recording.require_enabled(tx, repo)
        head = await repo_store.ref_with_commit_count(tx, repo.id, MAIN)
        if head is None:
            raise Conflict("This repo has no branch main to merge into. Create it first.")
        if charge is not None:
            await check_pull_requests(tx, repos, repo, charge.user_id)
            await check_refs(tx, repos, repo, charge.user_id)
            await charge_text(tx, repos, repo, charge, num, len(description.encode()), now)
        discussion = Discussion(new_id(now), repo.id, num, title, "draft", MAIN, caller.user.id, now, updated_at=now)
        await add_in(tx, repos, repo, discussion, description, by_guest=charge is not None)
        sha, commits = head
        new_ref = [RefChange(discussion.ref, None, sha)]
        counts = {} if commits is None else {sha: commits}
        await move_refs_in(tx, repos, repo, new_ref, None, now, counts, by_guest=charge is not None)
        return discussion

    write = repos.db.write if charge is None else repos.db.write_long
    opened = await write(unit)
    repos.outbox.send_soon()
    return opened


async def next_number(tx: Tx, repo: Repo, charge: Charge | None) -> int:
    """Lock the repo and return the number of a new discussion. The account of a guest is locked before the repo."""
    if charge is not None:
        await lock_account_by_id(tx, charge.user_id)
    num = await repo_store.next_discussion_number(tx, repo.id)
    if num is None:
        raise NotFound(REPO_GONE, code="RepoNotFound")
    return num


async def add_in(tx: Tx, repos: Repos, repo: Repo, discussion: Discussion, description: str, *, by_guest: bool) -> None:
    """Add a discussion with its first comment, its event and its mail, in the transaction that assigned its number."""
    now = discussion.created_at
    await store.add(tx, discussion)
    await index_title(tx, repo.id, discussion)
    entry = await entry_store.add(tx, repo.id, discussion.num, COMMENT, discussion.author_id, description, now)
    await store.add_participants(tx, repo.id, discussion.num, [recording.initial_participant(repo)])
    mentioned = await recording.add_participants(tx, repo, discussion, entry, now)
    await recording.record(tx, repos, repo, Kind.DISCUSSION_CREATE, discussion, now, comment=entry, by_guest=by_guest)
    await notify(tx, repos, repo, discussion, discussion.author_id, f"opened this {discussion.noun}", mentioned)
