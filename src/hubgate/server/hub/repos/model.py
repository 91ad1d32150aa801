"""Repos as the rest of the hub sees them, and what a name may be."""

import re
from collections.abc import Sequence
from enum import Enum
from typing import Any

import msgspec

from hubgate.server.access import resource
from hubgate.server.errors import Unprocessable
from hubgate.server.events.payload import FOLDERS, Snapshot

LONGEST_NAME = 96
MAIN = "refs/heads/main"
PULL_REQUESTS = "refs/pr/"
UNLINK_FIRST = "the name is a redirect. It is free once it is unlinked in the settings of its owner, under Redirects."
REPO_GONE = "The repo was deleted meanwhile."
TURNED_OFF = "Discussions and pull requests are turned off in this repo."

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,96}\Z")


def is_pull_request(ref: str) -> bool:
    return ref.startswith(PULL_REQUESTS)


class RepoType(Enum):
    MODEL = "model"
    DATASET = "dataset"
    SPACE = "space"

    @property
    def plural(self) -> str:
        return f"{self.value}s"

    @property
    def folder(self) -> str:
        """What stands before `namespace/name` in addresses."""
        return FOLDERS[self.value]


class Owner(msgspec.Struct, frozen=True):
    """A user or an organization, as far as its repos care."""

    # "user" or "org".
    kind: str
    id: str
    name: str

    @property
    def namespace(self) -> resource.Namespace:
        return resource.Organization(self.id) if self.kind == "org" else resource.Account(self.id)


class KindOfModel(msgspec.Struct, frozen=True):
    """What lists show of a card. Its author may have written anything there."""

    pipeline_tag: Any = None
    library_name: Any = None


class Repo(msgspec.Struct, frozen=True):
    """The order of the fields is that of `store.REPO`."""

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

    @property
    def full_name(self) -> str:
        return f"{self.owner_name}/{self.name}"

    @property
    def kind(self) -> RepoType:
        return RepoType(self.type)

    @property
    def path(self) -> str:
        """The address of its page, below the base address."""
        return f"/{self.kind.folder}{self.full_name}"

    @property
    def label(self) -> str:
        return f"{self.type} {self.full_name}"

    @property
    def owner(self) -> Owner:
        return Owner(self.owner_kind, self.owner_id, self.owner_name)

    @property
    def tag_list(self) -> list[str]:
        tags: list[str] = msgspec.json.decode(self.tags)
        return tags

    @property
    def kind_of_model(self) -> KindOfModel:
        return msgspec.json.decode(self.card, type=KindOfModel)

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

    def judged(self, *, granted: bool = False) -> resource.Repo:
        """What access/policy.py has to know of it."""
        return resource.Repo(
            owner=self.owner.namespace,
            private=bool(self.private),
            gated=bool(self.gated),
            granted=granted,
            creator_id=self.creator_id,
            creator_client=self.creator_client,
            label=self.label,
        )


class Redirect(msgspec.Struct, frozen=True):
    """A name in the namespace of `owner_id` that leads to a repo. The order of the fields is `store.REDIRECT`'s."""

    owner_id: str
    type: str
    # Lower case, without the namespace.
    key: str
    # None where that was before it was stored.
    left_at: int | None
    # The present name of the user who let it lead out of its namespace.
    allowed_by: str | None
    repo: Repo

    @property
    def is_outside(self) -> bool:
        """Whether it leads out of its namespace."""
        return self.owner_id != self.repo.owner_id


class Card(msgspec.Struct, frozen=True):
    """What README.md says about a repo at its head."""

    data: dict[str, Any]
    tags: Sequence[str]

    @property
    def data_json(self) -> str:
        return msgspec.json.encode(self.data).decode()

    @property
    def tags_json(self) -> str:
        return msgspec.json.encode(list(self.tags)).decode()


NO_CARD = Card({}, ())


def check_repo_name(name: str) -> str:
    """The name itself; Unprocessable says which rule it breaks."""
    if not _NAME.match(name):
        raise Unprocessable(
            f"A repo's name has 1 to {LONGEST_NAME} ASCII letters, digits, dashes, underscores or dots: {name[:120]!r}."
        )
    if name[0] in "-." or name[-1] in "-.":
        raise Unprocessable("A repo's name neither starts nor ends with a dash or a dot.")
    if "--" in name or ".." in name:
        raise Unprocessable("A repo's name has no two dashes or dots in a row.")
    if name.lower().endswith(".git"):
        raise Unprocessable("A repo's name does not end in .git.")
    return name
