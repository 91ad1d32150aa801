"""Changing the status, the title or the pin of a discussion or pull request."""

from typing import Literal

from msgspec.structs import replace

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller
from hubgate.server.access.policy import decide
from hubgate.server.access.resource import Post
from hubgate.server.errors import Conflict, Forbidden
from hubgate.server.events.kinds import Kind
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import recording, store
from hubgate.server.hub.discussions.entries import store as entry_store
from hubgate.server.hub.discussions.entries.model import STATUS_CHANGE, TITLE_CHANGE, Conversation
from hubgate.server.hub.discussions.model import Discussion, check_comment, check_title
from hubgate.server.hub.discussions.notifications import notify
from hubgate.server.hub.discussions.search_documents import index_title
from hubgate.server.hub.guests import store as guest_store
from hubgate.server.hub.guests.charges import charge_of, check_discussions, check_pull_requests
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import Repo
from hubgate.server.storage.database import Tx

CLOSED_BY_WRITER = "A user who may write to this repo closed this {noun}. Only such users can reopen it."
# The statuses from which each status can be reached.
_PREVIOUS = {"closed": ("draft", "open"), "open": ("draft", "closed")}


async def set_status(
    repos: Repos,
    repo: Repo,
    discussion: Discussion,
    caller: Caller,
    status: Literal["open", "closed"],
    comment: str = "",
) -> Conversation:
    """Close or reopen a discussion, or publish a draft, and return the new entry. A comment is added before it."""
    user_id, now = caller.user.id, repos.clock()
    comment = check_comment(comment) if comment.strip() else ""
    charge = charge_of(repo, caller.identity)

    async def unit(tx: Tx) -> Conversation:
        found = await recording.lock_and_find(tx, repo, discussion.num, charge)
        if found.status not in _PREVIOUS[status]:
            raise Conflict(f"The {found.noun} is already {found.status}.")
        is_guest = await _is_guest(tx, repo, caller)
        if status == "open":
            await _check_can_open(tx, repos, repo, found, user_id, is_guest=is_guest)
        if comment:
            await recording.require_enabled(tx, repo)
            await recording.add_comment(tx, repos, repo, found, user_id, comment, charge, now)
        closed_by = user_id if status == "closed" else None
        changed = replace(found, status=status, closed_by=closed_by, updated_at=now)
        await store.update(tx, changed)
        entry = await entry_store.add(tx, repo.id, found.num, STATUS_CHANGE, user_id, status, now)
        await recording.record(tx, repos, repo, Kind.DISCUSSION_UPDATE, changed, now, by_guest=is_guest)
        verb = "closed" if status == "closed" else "published" if found.status == "draft" else "reopened"
        await notify(tx, repos, repo, changed, user_id, f"{verb} this {found.noun}")
        return await entry_store.conversation_of(tx, entry)

    write = repos.db.write if charge is None else repos.db.write_long
    added = await write(unit)
    repos.outbox.send_soon()
    return added


async def _is_guest(tx: Tx, repo: Repo, caller: Caller) -> bool:
    """Whether the limits on guests apply: also to a token of a writer that may not moderate here."""
    may_moderate = decide(caller.identity, Action.DISCUSSION_MODERATE, Post(repo.as_resource(), None)).allowed
    return not may_moderate or not await guest_store.is_writer(tx, repo.id, caller.user.id)


async def _check_can_open(tx: Tx, repos: Repos, repo: Repo, found: Discussion, user_id: str, *, is_guest: bool) -> None:
    if found.base is not None and await repo_store.ref(tx, repo.id, found.ref) is None:
        verb = "published" if found.status == "draft" else "reopened"
        raise Conflict(f"The pull request cannot be {verb}: {found.ref} was deleted.")
    if is_guest:
        await recording.require_enabled(tx, repo)
    if found.status != "closed":
        return
    # A full discussion can still be closed, but not closed and reopened forever.
    await recording.require_room(tx, found, user_id, 0, is_guest=is_guest)
    # The limits on guests do not apply to writers.
    if not is_guest:
        return
    if found.closed_by not in (None, user_id):
        raise Forbidden(CLOSED_BY_WRITER.format(noun=found.noun))
    check = check_discussions if found.base is None else check_pull_requests
    await check(tx, repos, repo, user_id)


async def set_title(repos: Repos, repo: Repo, discussion: Discussion, caller: Caller, title: str) -> Conversation:
    """Change the title and return the new entry."""
    title, user_id, now = check_title(title), caller.user.id, repos.clock()

    async def unit(tx: Tx) -> Conversation:
        found = await recording.lock_and_find(tx, repo, discussion.num)
        if found.title == title:
            raise Conflict(f"This is already the title of the {found.noun}.")
        is_guest = await _is_guest(tx, repo, caller)
        if is_guest:
            await recording.require_enabled(tx, repo)
        await recording.require_room(tx, found, user_id, len(title), is_guest=is_guest)
        changed = replace(found, title=title, updated_at=now)
        await store.update(tx, changed)
        await index_title(tx, repo.id, changed)
        entry = await entry_store.add(tx, repo.id, found.num, TITLE_CHANGE, user_id, title, now, found.title)
        await recording.record(tx, repos, repo, Kind.DISCUSSION_UPDATE, changed, now, by_guest=is_guest)
        return await entry_store.conversation_of(tx, entry)

    return await repos.db.write(unit)


async def set_pinned(repos: Repos, repo: Repo, discussion: Discussion, pinned: bool) -> None:
    """Pin or unpin a discussion; setting the current value again changes nothing."""
    now = repos.clock()

    async def unit(tx: Tx) -> None:
        found = await recording.lock_and_find(tx, repo, discussion.num)
        if bool(found.pinned) == pinned:
            return
        changed = replace(found, pinned=int(pinned))
        await store.update(tx, changed)
        await recording.record(tx, repos, repo, Kind.DISCUSSION_UPDATE, changed, now, by_guest=False)

    await repos.db.write(unit)
