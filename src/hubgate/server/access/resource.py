"""Resources, with only the facts that a permission check needs.

Use cases build these from rows. Owners are identified by id: names can be reused, ids cannot.
"""

from msgspec import Struct


class Account(Struct, frozen=True):
    """A user's own area: profile, credentials, apps, webhooks, and the namespace of the user's repos."""

    id: str


class Organization(Struct, frozen=True):
    """An organization: members, settings, apps, webhooks, audit log, and the namespace of its repos."""

    id: str


Namespace = Account | Organization
"""The owner of repos and collections, and the account that jobs and inference are charged to."""

NOBODY = Account("")
"""Represents a namespace that does not exist; no user has an empty id."""


class Repo(Struct, frozen=True):
    """A repo. `granted`: this caller's request for access was accepted; membership and ownership do not set it.

    `creator_client` is the client id of the app or fine-grained token that created the repo; otherwise None.
    `label` is the repo's name in error messages, such as "model acme/tiny". `id` is empty for a missing repo.
    """

    owner: Namespace
    private: bool = False
    gated: bool = False
    granted: bool = False
    creator_id: str | None = None
    creator_client: str | None = None
    label: str = "this repo"
    id: str = ""

    @classmethod
    def missing(cls, owner: Namespace = NOBODY) -> "Repo":
        """A placeholder for a repo that does not exist, for `policy.refuse_missing`."""
        return cls(owner, private=True)


class Post(Struct, frozen=True):
    """A discussion, a pull request or a comment. `author_id` is None if that user was deleted."""

    repo: Repo
    author_id: str | None


class Collection(Struct, frozen=True):
    owner: Namespace
    private: bool = False

    @classmethod
    def missing(cls, owner: Namespace = NOBODY) -> "Collection":
        """A placeholder for a collection that does not exist, for `policy.refuse_missing`."""
        return cls(owner, private=True)


class Hub(Struct, frozen=True):
    """The hub itself: its public surface and its operator's pages."""


HUB = Hub()

Resource = Repo | Post | Collection | Account | Organization | Hub
