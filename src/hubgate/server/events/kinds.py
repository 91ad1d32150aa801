"""The registry of event kinds, with the JSON Schema of each kind's payload.

To add a kind, add a row here and an `outbox.record` call at the change; tests require its golden payload in
`contract/events/` and its line in `docs/events.md`.
"""

from collections.abc import Mapping
from enum import Enum, unique

from msgspec import Struct

from hubgate.server.events.schemas import (
    DIALECT,
    OWNER,
    REF,
    REPO,
    TRUNCATED,
    WEBHOOK,
    Schema,
    flag,
    list_of,
    object_of,
    text,
)


class KindDefinition(Struct, frozen=True):
    scope: str
    action: str
    # Completes "Sent when ...".
    when: str
    # Members of the payload, in addition to those that every payload has.
    extras: Mapping[str, Schema]


@unique
class Kind(Enum):
    scope: str
    action: str
    when: str
    extras: Mapping[str, Schema]

    def __init__(self, row: KindDefinition) -> None:
        self.scope, self.action, self.when, self.extras = row.scope, row.action, row.when, row.extras

    @property
    def full_name(self) -> str:
        return f"{self.scope}.{self.action}"

    @property
    def domain(self) -> str:
        """The webhook domain that this kind belongs to."""
        return "discussion" if self.scope.startswith("discussion") else "repo"

    def schema(self, address: str) -> Schema:
        """The JSON Schema of the payload; `address` is the URL that serves the schema."""
        event = object_of(
            "The kind of event.",
            {
                "action": {"const": self.action, "description": "The kind of change."},
                "scope": {"const": self.scope, "description": "The part of the repo that changed."},
            },
        )
        payload = object_of(
            f"Sent when {self.when}.",
            {"event": event, "repo": REPO, **self.extras, "webhook": WEBHOOK},
            {"truncated": TRUNCATED},
        )
        return {"$schema": DIALECT, "$id": address, "title": f"{self.scope} {self.action}", **payload}

    REPO_CREATE = KindDefinition("repo", "create", "a repo is created, with its first commit", {})
    REPO_DELETE = KindDefinition("repo", "delete", "a repo is deleted", {})
    REPO_MOVE = KindDefinition(
        "repo",
        "move",
        "a repo gets another name or owner",
        {"movedTo": object_of("The new location.", {"name": text("The name with its namespace."), "owner": OWNER})},
    )
    REPO_CONTENT = KindDefinition(
        "repo.content",
        "update",
        "branches, tags or pull requests are created, updated or deleted",
        {"updatedRefs": list_of(REF, "The refs that changed, all in one change.")},
    )
    REPO_CONFIG = KindDefinition(
        "repo.config",
        "update",
        "settings of a repo change",
        {
            "updatedConfig": object_of(
                "The changed settings; empty if only settings that are not listed here changed.",
                {},
                {"private": flag("Whether the repo is private now.")},
            )
        },
    )
