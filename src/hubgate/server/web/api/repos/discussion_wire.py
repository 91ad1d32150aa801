"""Discussions and their entries as JSON, as existing clients read them. They call an entry an event."""

from collections.abc import Mapping
from typing import Any

from hubgate.server.clock import iso
from hubgate.server.hub.discussions.entries.model import (
    COMMENT,
    COMMIT,
    STATUS_CHANGE,
    Conversation,
    Entry,
    UserLabel,
)
from hubgate.server.hub.discussions.model import Discussion
from hubgate.server.hub.repos.model import Repo
from hubgate.server.web.avatars import avatar_url
from hubgate.server.web.conversations import HIDDEN_COMMENT, comments_as_html

# Users that are named for each reaction.
MAX_REACTION_USERS = 50
# The latest edits that are listed for each comment: a discussion can have 200,000.
MAX_LISTED_EDITS = 10


def describe(repo: Repo, discussion: Discussion, author: UserLabel | None) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "num": discussion.num,
        "title": discussion.title,
        "status": discussion.status,
        "createdAt": iso(discussion.created_at),
        "isPullRequest": discussion.base is not None,
        "repo": {"name": repo.full_name, "type": repo.type},
        "pinned": bool(discussion.pinned),
    }
    return fields | _author(discussion.author_id, author)


async def describe_entries(repo: Repo, conversation: Conversation) -> list[dict[str, Any]]:
    html = await comments_as_html(repo, conversation.entries)
    return [_entry(entry, conversation, html) for entry in conversation.entries]


async def describe_entry(repo: Repo, conversation: Conversation) -> dict[str, Any]:
    """The only entry of a conversation, as JSON."""
    return (await describe_entries(repo, conversation))[0]


def _entry(entry: Entry, conversation: Conversation, html: Mapping[str, str]) -> dict[str, Any]:
    return {
        "id": entry.id,
        "type": entry.type,
        "createdAt": iso(entry.created_at),
        **_author(entry.author_id, conversation.users.get(entry.author_id)),
        "data": _data(entry, conversation, html),
    }


def _data(entry: Entry, conversation: Conversation, html: Mapping[str, str]) -> dict[str, Any]:
    if entry.type == COMMENT:
        return _comment(entry, conversation, html[entry.id])
    if entry.type == STATUS_CHANGE:
        return {"status": entry.text}
    if entry.type == COMMIT:
        return {"subject": entry.text, "oid": entry.detail}
    return {"from": entry.detail, "to": entry.text}


def _comment(entry: Entry, conversation: Conversation, html: str) -> dict[str, Any]:
    edits, users = entry.edit_list, conversation.users
    listed = edits[-MAX_LISTED_EDITS:]
    history = [{"updatedAt": iso(edit.at), **_author(edit.user_id, users.get(edit.user_id))} for edit in listed]
    last_id = edits[-1].user_id if edits else entry.author_id
    fields: dict[str, Any] = {
        "edited": bool(edits),
        "hidden": entry.is_hidden,
        "latest": {
            "raw": HIDDEN_COMMENT if entry.is_hidden else entry.text,
            "html": str(html),
            "updatedAt": iso(edits[-1].at if edits else entry.created_at),
            **_author(last_id, users.get(last_id)),
        },
        "numEdits": len(edits),
        "history": history,
        "reactions": [
            {"reaction": found.reaction, "users": found.users[:MAX_REACTION_USERS], "count": len(found.users)}
            for found in conversation.reactions.get(entry.id, ())
        ],
    }
    hidden_by = users.get(entry.hidden_by or "")
    if hidden_by is not None:
        fields["hiddenBy"] = hidden_by.name
    return fields


def _author(user_id: str, user: UserLabel | None) -> dict[str, Any]:
    """The member `author`, left out for a deleted user: existing clients reject null."""
    if user is None:
        return {}
    return {
        "author": {
            "_id": user_id,
            "name": user.name,
            "fullname": user.fullname or user.name,
            "type": "user",
            "avatarUrl": avatar_url(user_id),
            "isPro": False,
            "isHf": False,
            "isHfAdmin": False,
            "isMod": False,
        }
    }
