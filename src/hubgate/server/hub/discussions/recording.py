"""Steps that all changes of discussions share: locking, limits, entries, participants and webhook events.

Every function runs in the transaction of the change. A change locks the repo before it reads the discussion, so
concurrent changes of one discussion run one after another and each sees the result of the one before.
"""

from typing import Any

from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.account_locks import lock_account_by_id
from hubgate.server.accounts.model import User
from hubgate.server.errors import Conflict, Forbidden, NotFound
from hubgate.server.events import outbox
from hubgate.server.events.kinds import Kind
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import store
from hubgate.server.hub.discussions.entries import store as entry_store
from hubgate.server.hub.discussions.entries.model import (
    COMMENT,
    MAX_CHARACTERS,
    MAX_ENTRIES,
    MAX_ENTRIES_OF_GUEST,
    Entry,
)
from hubgate.server.hub.discussions.model import Discussion, mentions_in, page_path
from hubgate.server.hub.discussions.notifications import notify
from hubgate.server.hub.guests.charges import Charge, charge_text
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import DISCUSSIONS_DISABLED, REPO_GONE, Repo
from hubgate.server.hub.repos.transactions import lock_repo
from hubgate.server.storage.database import Tx

NO_DISCUSSION = "Discussion or pull request not found in this repo."
NO_COMMENT = "Comment not found in this discussion."


async def lock_and_find(tx: Tx, repo: Repo, num: int, charge: Charge | None = None) -> Discussion:
    """Lock the repo until the transaction ends and return the current discussion. The account of a guest is
    locked before the repo.
    """
    if charge is not None:
        await lock_account_by_id(tx, charge.user_id)
    await lock_repo(tx, repo.id)
    found = await store.find(tx, repo.id, num)
    if found is None:
        raise not_found()
    return found


def not_found() -> NotFound:
    return NotFound(NO_DISCUSSION)


async def require_enabled(tx: Tx, repo: Repo) -> None:
    """Raise Forbidden if discussions are turned off. The transaction must have locked the repo."""
    current = await repo_store.by_id(tx, repo.id)
    if current is None or current.discussions_disabled:
        raise Forbidden(DISCUSSIONS_DISABLED)


async def require_room(tx: Tx, found: Discussion, user_id: str, size: int, *, is_guest: bool) -> None:
    """Raise if the discussion cannot have another entry of `size` characters by this user."""
    entries, characters = await entry_store.totals(tx, found.repo_id, found.num)
    if entries >= MAX_ENTRIES or characters + size > MAX_CHARACTERS:
        raise Conflict(f"This {found.noun} is full. Open another one.")
    if is_guest and await entry_store.count_by(tx, found.repo_id, found.num, user_id) >= MAX_ENTRIES_OF_GUEST:
        raise Forbidden(
            f"Users who may not write to this repo can add at most {MAX_ENTRIES_OF_GUEST} entries to a {found.noun}."
        )


async def add_comment(
    tx: Tx, repos: Repos, repo: Repo, found: Discussion, user_id: str, text: str, charge: Charge | None, now: int
) -> Entry:
    """Add a comment with its event and mail. The transaction must have locked the account of a guest and the repo."""
    await require_room(tx, found, user_id, len(text), is_guest=charge is not None)
    if charge is not None:
        await charge_text(tx, repos, repo, charge, found.num, len(text.encode()), now)
    entry = await entry_store.add(tx, repo.id, found.num, COMMENT, user_id, text, now)
    await store.touch(tx, repo.id, found.num, now)
    mentioned = await add_participants(tx, repo, found, entry, now)
    await record(tx, repos, repo, Kind.COMMENT_CREATE, found, now, comment=entry, by_guest=charge is not None)
    await notify(tx, repos, repo, found, user_id, "commented", mentioned)
    return entry


async def add_participants(tx: Tx, repo: Repo, found: Discussion, entry: Entry, now: int) -> list[str]:
    """Add the author of an entry and the users that it mentions, if they may see the repo; return the ids of the
    mentioned users.
    """
    await store.add_participants(tx, repo.id, found.num, [entry.author_id])
    readers = await store.readers_named(tx, repo.id, mentions_in(entry.text))
    mentioned = [user_id for user_id in readers if user_id != entry.author_id]
    await store.add_participants(tx, repo.id, found.num, mentioned, now)
    return mentioned


async def remove_mentioned(tx: Tx, repo: Repo, found: Discussion, hidden_text: str) -> None:
    """Remove the users whom a hidden text mentions from the discussion, except those whom a visible comment mentions.
    Authors of entries and the initial participant still take part.
    """
    hidden = [await account_store.account_named(tx, name) for name in mentions_in(hidden_text)]
    users = [account for account in hidden if isinstance(account, User)]
    if not users:
        return
    texts = await entry_store.visible_texts_containing(tx, repo.id, found.num, "@")
    visible = {name for text in texts for name in mentions_in(text)}
    for user in users:
        if visible.isdisjoint(await account_store.names_of(tx, user.id)):
            await store.remove_mention(tx, repo.id, found.num, user.id, initial_participant(repo))


def initial_participant(repo: Repo) -> str:
    """The id of the user who takes part in every discussion: the owner of the repo; for an organization's repo, the
    user who created the repo.
    """
    return repo.owner_id if repo.owner_kind == "user" else repo.creator_id


async def record(
    tx: Tx,
    repos: Repos,
    repo: Repo,
    kind: Kind,
    found: Discussion,
    now: int,
    *,
    comment: Entry | None = None,
    by_guest: bool,
) -> None:
    """Record the webhook event of a change. The repo does not move up in lists: its content is the same."""
    seq = await repo_store.next_seq(tx, repo.id, None)
    if seq is None:
        raise NotFound(REPO_GONE, code="RepoNotFound")
    current = await repo_store.by_id(tx, repo.id) or repo
    extras: dict[str, Any] = {"discussion": _discussion_payload(current, found, repos.base_url)}
    if comment is not None:
        extras["comment"] = _comment_payload(current, found, comment, repos.base_url)
    await outbox.record(tx, kind, current.snapshot, seq, extras, repos.base_url, now, by_guest=by_guest)


def _discussion_payload(repo: Repo, found: Discussion, base_url: str) -> dict[str, Any]:
    api = f"{base_url}/api/{repo.repo_type.plural}/{repo.full_name}/discussions/{found.num}"
    payload: dict[str, Any] = {
        "id": found.id,
        "title": found.title,
        "url": {"web": base_url + page_path(repo, found.num), "api": api},
        "status": found.status,
        "author": {"id": found.author_id},
        "num": found.num,
        "isPullRequest": found.base is not None,
        "pinned": bool(found.pinned),
    }
    if found.base is not None:
        merged = {"mergeCommitId": found.merge_sha} if found.merge_sha is not None else {}
        payload["changes"] = {"base": found.base, **merged}
    return payload


def _comment_payload(repo: Repo, found: Discussion, entry: Entry, base_url: str) -> dict[str, Any]:
    content = {} if entry.is_hidden else {"content": entry.text}
    return {
        "id": entry.id,
        "author": {"id": entry.author_id},
        **content,
        "hidden": entry.is_hidden,
        "url": {"web": f"{base_url}{page_path(repo, found.num)}#{entry.id}"},
    }
