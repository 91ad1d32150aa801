"""Comments: adding, editing and hiding them, and reactions to them."""

import msgspec
from msgspec.structs import replace

from hubgate.server.access.caller import Caller
from hubgate.server.errors import Conflict, NotFound, Unprocessable
from hubgate.server.events.kinds import Kind
from hubgate.server.events.redaction import remove_texts_of
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import recording, store
from hubgate.server.hub.discussions.entries import store as entry_store
from hubgate.server.hub.discussions.entries.model import (
    COMMENT,
    MAX_EDITS,
    REACTIONS,
    Conversation,
    Edit,
    Entry,
)
from hubgate.server.hub.discussions.model import Discussion, check_comment
from hubgate.server.hub.guests import store as guest_store
from hubgate.server.hub.guests.charges import charge_of, charge_text
from hubgate.server.hub.repos.model import Repo
from hubgate.server.ids import is_id
from hubgate.server.storage.database import Tx

HIDDEN = "This comment is hidden."


async def add(repos: Repos, repo: Repo, discussion: Discussion, caller: Caller, text: str) -> Conversation:
    """Add a comment, and return it as a conversation of one entry."""
    text, charge, now = check_comment(text), charge_of(repo, caller.identity), repos.clock()

    async def unit(tx: Tx) -> Conversation:
        found = await recording.lock_and_find(tx, repo, discussion.num, charge)
        await recording.require_enabled(tx, repo)
        entry = await recording.add_comment(tx, repos, repo, found, caller.user.id, text, charge, now)
        return await entry_store.conversation_of(tx, entry)

    write = repos.db.write if charge is None else repos.db.write_long
    added = await write(unit)
    repos.outbox.send_soon()
    return added


async def edit(
    repos: Repos, repo: Repo, discussion: Discussion, comment: Entry, caller: Caller, text: str
) -> Conversation:
    text, charge, now = check_comment(text), charge_of(repo, caller.identity), repos.clock()

    async def unit(tx: Tx) -> Conversation:
        found = await recording.lock_and_find(tx, repo, discussion.num, charge)
        await recording.require_enabled(tx, repo)
        entry = await _find_visible(tx, found, comment.id)
        edits = entry.edit_list
        if len(edits) >= MAX_EDITS:
            raise Conflict(f"A comment can be edited at most {MAX_EDITS} times.")
        growth = max(len(text) - len(entry.text), 0)
        if growth:
            await recording.require_room(tx, found, caller.user.id, growth, is_guest=False)
        if charge is not None:
            # Not only the growth: the event of every edit stores the whole text.
            await charge_text(tx, repos, repo, charge, found.num, len(text.encode()), now)
        edits_json = msgspec.json.encode([*edits, Edit(now, caller.user.id)]).decode()
        changed = replace(entry, text=text, edits=edits_json)
        await entry_store.update(tx, changed)
        await store.touch(tx, repo.id, found.num, now)
        await recording.add_participants(tx, repo, found, changed, now)
        by_guest = charge is not None
        await recording.record(tx, repos, repo, Kind.COMMENT_UPDATE, found, now, comment=changed, by_guest=by_guest)
        return await entry_store.conversation_of(tx, changed)

    write = repos.db.write if charge is None else repos.db.write_long
    return await write(unit)


async def hide(repos: Repos, repo: Repo, discussion: Discussion, comment: Entry, caller: Caller) -> Conversation:
    """Hide a comment permanently: its text is deleted, also from events, and so are its reactions. Users whom only it
    mentions no longer take part.
    """
    now = repos.clock()

    async def unit(tx: Tx) -> Conversation:
        found = await recording.lock_and_find(tx, repo, discussion.num)
        entry = await _find_visible(tx, found, comment.id)
        by_guest = not await guest_store.is_writer(tx, repo.id, caller.user.id)
        hidden = replace(entry, text="", hidden_by=caller.user.id)
        await entry_store.update(tx, hidden)
        await entry_store.remove_reactions(tx, entry.id)
        await recording.remove_mentioned(tx, repo, found, entry.text)
        await remove_texts_of(tx, repo.id, entry.id, entry.text_times)
        await recording.record(tx, repos, repo, Kind.COMMENT_UPDATE, found, now, comment=hidden, by_guest=by_guest)
        return await entry_store.conversation_of(tx, hidden)

    # The comment may have a hundred edits.
    return await repos.db.write_long(unit)


async def react(
    repos: Repos, repo: Repo, discussion: Discussion, comment: Entry, caller: Caller, reaction: str
) -> Conversation:
    """Add a reaction to a comment, or remove it if the user has it already. Reactions have no webhook event."""
    if reaction not in REACTIONS:
        raise Unprocessable(f"A reaction must be one of {' '.join(REACTIONS)}")
    now = repos.clock()

    async def unit(tx: Tx) -> Conversation:
        found = await recording.lock_and_find(tx, repo, discussion.num)
        await recording.require_enabled(tx, repo)
        entry = await _find_visible(tx, found, comment.id)
        await entry_store.toggle_reaction(tx, entry.id, reaction, caller.user.id, now)
        return await entry_store.conversation_of(tx, entry)

    return await repos.db.write(unit)


async def find_comment(repos: Repos, repo: Repo, discussion: Discussion, comment_id: str) -> Entry:
    """The comment with this id, in upper or lower case. Raises NotFound."""
    lower = comment_id.lower()
    entry = await entry_store.find(repos.db, repo.id, discussion.num, lower) if is_id(lower) else None
    if entry is None or entry.type != COMMENT:
        raise NotFound(recording.NO_COMMENT)
    return entry


async def _find_visible(tx: Tx, found: Discussion, comment_id: str) -> Entry:
    entry = await entry_store.find(tx, found.repo_id, found.num, comment_id)
    if entry is None:
        raise NotFound(recording.NO_COMMENT)
    if entry.is_hidden:
        raise Conflict(HIDDEN)
    return entry
