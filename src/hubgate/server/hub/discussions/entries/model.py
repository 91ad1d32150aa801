"""Entries of discussions, and a conversation: entries with everything that is needed to show them."""

from collections.abc import Mapping, Sequence

import msgspec

COMMENT, COMMIT, STATUS_CHANGE, TITLE_CHANGE = "comment", "commit", "status-change", "title-change"

REACTIONS = ("👍", "👎", "😄", "🎉", "😕", "❤️", "🚀", "👀")
MAX_EDITS = 100
# Limits of one discussion: a reader receives all of it at once.
MAX_ENTRIES = 2_000
MAX_CHARACTERS = 4 * 1024 * 1024
# Entries of a user who may not write to the repo, in one discussion.
MAX_ENTRIES_OF_GUEST = 100


class Edit(msgspec.Struct, frozen=True, array_like=True):
    """An edit of a comment."""

    at: int
    user_id: str


_EDITS = msgspec.json.Decoder(list[Edit])


class Entry(msgspec.Struct, frozen=True):
    """An entry's row. The order of the fields is that of the store's columns."""

    id: str
    position: int
    # One of the four types above.
    type: str
    author_id: str
    created_at: int
    # A comment's Markdown, a commit's subject, the new status or the new title.
    text: str
    # A commit's SHA, or the former title.
    detail: str | None = None
    # JSON.
    edits: str = "[]"
    hidden_by: str | None = None

    @property
    def edit_list(self) -> list[Edit]:
        return _EDITS.decode(self.edits)

    @property
    def text_times(self) -> list[int]:
        """When a comment was written and edited. There is an event with the whole text for each."""
        return [self.created_at, *(edit.at for edit in self.edit_list)]

    @property
    def is_hidden(self) -> bool:
        return self.hidden_by is not None


class Commit(msgspec.Struct, frozen=True):
    """A commit of a pull request."""

    sha: str
    subject: str


class UserLabel(msgspec.Struct, frozen=True):
    name: str
    fullname: str


class Reaction(msgspec.Struct, frozen=True):
    reaction: str
    # The names of the users, in the order of their reactions.
    users: list[str]


class Conversation(msgspec.Struct, frozen=True):
    """Entries in order, with the users who appear in them by id, and reactions by the id of the entry. Deleted users
    are missing.
    """

    entries: Sequence[Entry]
    users: Mapping[str, UserLabel]
    reactions: Mapping[str, Sequence[Reaction]]
