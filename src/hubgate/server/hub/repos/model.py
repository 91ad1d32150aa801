"""Repos, their owners, redirects and cards, and the rules for names of repos."""

import re
from collections.abc import Sequence
from enum import Enum
from typing import Any

import msgspec

from hubgate.server.access import resource
from hubgate.server.errors import Unprocessable
from hubgate.server.events.payload import URL_PREFIXES, Snapshot

MAX_NAME_LENGTH = 96
MAIN = "refs/heads/main"
PULL_REQUESTS = "refs/pr/"
UNLINK_FIRST = "the name is a redirect. To free the name, unlink it in the settings of its owner, under Redirects."
REPO_GONE = "The repo was deleted by another request."
DISCUSSIONS_DISABLED = "Discussions and pull requests are turned off in this repo."

_PULL_REQUEST = re.compile(rf"{PULL_REQUESTS}([1-9][0-9]{{0,8}})\Z")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,96}\Z")


def is_pull_request(ref: str) -> bool:
    """Whether the ref is in the namespace of pull requests. The pull request itself may not exist."""
    return ref.startswith(PULL_REQUESTS)


def pull_request_of(ref: str) -> int | None:
    """The number of the pull request that the ref `refs/pr/N` belongs to."""
    found = _PULL_REQUEST.match(ref)
    return int(found[1]) if found else None


class RepoType(Enum):
    MODEL = "model"
    DATASET = "dataset"
    SPACE = "space"

    @property
    def plural(self) -> str:
        return f"{self.value}s"

    @property
    def url_prefix(self) -> str:
        """The prefix of `namespace/name` in URLs."""
        return URL_PREFIXES[self.value]


class RepoOwner(msgspec.Struct, frozen=True):
    """A user or an organization that owns repos."""

    # "user" or "org".
    kind: str
    id: str
    name: str

    @property
    def namespace(self) -> resource.Namespace:
        return resource.Organization(self.id) if self.kind == "org" else resource.Account(self.id)


class CardSummary(msgspec.Struct, frozen=True):
    """The fields of a card that lists show. The values are not validated: a card's author can write anything."""

    pipeline_tag: Any = None
    library_name: Any = None


class Repo(msgspec.Struct, frozen=True):
    """A repo's row. The order of the fields is that of `store.REPO`."""

    id: str
    type: str
    owner_kind: str
    owner_id: str
    owner_name: str
    name: str
    private: int
    gated: str
    discussions_disabled: int
    sdk: str
    creator_id: str
    creator_client: str | None
    head_sha: str | None
    # JSON.
    card: str
    tags: str
    created_at: int
    updated_at: int
    generation: int
    last_seq: int
    # Not a column: whether the caller's request for access was accepted (`hub/gating`).
    granted: bool = False

    @property
    def full_name(self) -> str:
        return f"{self.owner_name}/{self.name}"

    @property
    def repo_type(self) -> RepoType:
        return RepoType(self.type)

    @property
    def path(self) -> str:
        """The path of the repo's page, relative to the base URL."""
        return f"/{self.repo_type.url_prefix}{self.full_name}"

    @property
    def label(self) -> str:
        return f"{self.type} {self.full_name}"

    @property
    def owner(self) -> RepoOwner:
        return RepoOwner(self.owner_kind, self.owner_id, self.owner_name)

    @property
    def tag_list(self) -> list[str]:
        tags: list[str] = msgspec.json.decode(self.tags)
        return tags

    @property
    def card_summary(self) -> CardSummary:
        return msgspec.json.decode(self.card, type=CardSummary)

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot(
            id=self.id,
            type=self.type,
            name=self.full_name,
            owner_id=self.owner_id,
            private=bool(self.private),
            head_sha=self.head_sha,
            tags=self.tag_list,
        )

    def granted_to_caller(self) -> "Repo":
        return msgspec.structs.replace(self, granted=True)

    def as_resource(self) -> resource.Repo:
        """The repo as access/policy.py needs it."""
        return resource.Repo(
            owner=self.owner.namespace,
            private=bool(self.private),
            gated=bool(self.gated),
            granted=self.granted,
            creator_id=self.creator_id,
            creator_client=self.creator_client,
            label=self.label,
            id=self.id,
        )


class Redirect(msgspec.Struct, frozen=True):
    """A former name of a repo, in the namespace of `owner_id`. The order of the fields is that of `store.REDIRECT`."""

    owner_id: str
    type: str
    # Lower case, without the namespace.
    key: str
    # When the repo was renamed or moved; None for redirects older than this column.
    left_at: int | None
    # The current name of the user who allowed a redirect to another namespace.
    allowed_by: str | None
    repo: Repo

    @property
    def leads_to_other_namespace(self) -> bool:
        """Whether the repo is in another namespace."""
        return self.owner_id != self.repo.owner_id


class Card(msgspec.Struct, frozen=True):
    """The metadata in README.md at the head of a repo."""

    data: dict[str, Any]
    tags: Sequence[str]
    # The first words of the README and of descriptions in its front matter, as tokens of the search index.
    words: Sequence[str] = ()

    @property
    def data_json(self) -> str:
        return msgspec.json.encode(self.data).decode()

    @property
    def tags_json(self) -> str:
        return msgspec.json.encode(list(self.tags)).decode()


NO_CARD = Card({}, ())


def check_repo_name(name: str) -> str:
    """Return the name if it is valid; raise Unprocessable with the broken rule otherwise."""
    if not _NAME.match(name):
        raise Unprocessable(
            f"A repo's name must have 1 to {MAX_NAME_LENGTH} ASCII letters, digits, dashes, underscores or dots: "
            f"{name[:120]!r}."
        )
    if name[0] in "-." or name[-1] in "-.":
        raise Unprocessable("A repo's name cannot start or end with a dash or a dot.")
    if "--" in name or ".." in name:
        raise Unprocessable("A repo's name cannot have two dashes or dots in a row.")
    if name.lower().endswith(".git"):
        raise Unprocessable("A repo's name cannot end in .git.")
    return name
