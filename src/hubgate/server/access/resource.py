"""What is touched, described by the facts a judgement needs and nothing else.

A use case fills these from the rows it has read. Owners are named by id: names can be reused, ids cannot.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Account:
    """A user's own area: profile, credentials, apps, webhooks, and the namespace of the user's repos."""

    id: str


@dataclass(frozen=True, slots=True)
class Organization:
    """An organization: members, settings, apps, webhooks, audit log, and the namespace of its repos."""

    id: str


Namespace = Account | Organization
"""Where repos and collections live, and what jobs and inference are charged to."""

NOBODY = Account("")
"""Stands for a namespace that does not exist; no user has an empty id."""


@dataclass(frozen=True, slots=True)
class Repo:
    """`granted`: this caller's own request for access was accepted; membership and ownership do not set it.

    `creator_client` is the app through which the repo was made, None when it was made without one.
    `label` is how a refusal names it, such as "model acme/tiny".
    """

    owner: Namespace
    private: bool = False
    gated: bool = False
    granted: bool = False
    creator_id: str | None = None
    creator_client: str | None = None
    label: str = "this repo"

    @classmethod
    def missing(cls, owner: Namespace = NOBODY) -> "Repo":
        """A stand-in for a repo that is not there, for `policy.refuse_missing`."""
        return cls(owner, private=True)


@dataclass(frozen=True, slots=True)
class Post:
    """A discussion, a pull request or one comment, with its author; None when that user is deleted."""

    repo: Repo
    author_id: str | None


@dataclass(frozen=True, slots=True)
class Collection:
    owner: Namespace
    private: bool = False

    @classmethod
    def missing(cls, owner: Namespace = NOBODY) -> "Collection":
        """A stand-in for a collection that is not there, for `policy.refuse_missing`."""
        return cls(owner, private=True)


@dataclass(frozen=True, slots=True)
class Hub:
    """The hub itself: its public surface and its operator's pages."""


HUB = Hub()

Resource = Repo | Post | Collection | Account | Organization | Hub
