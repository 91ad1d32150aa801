"""The registry of event kinds.

To add a kind, add a row here and an `outbox.record` call at the change; tests require its golden payload in
`contract/events/`.
"""

from dataclasses import dataclass
from enum import Enum, unique


@dataclass(frozen=True, slots=True)
class Row:
    scope: str
    action: str
    # Members of the payload besides `event`, `repo` and `webhook`.
    extras: tuple[str, ...]
    # Completes "Sent when ...".
    when: str


@unique
class Kind(Enum):
    scope: str
    action: str
    extras: tuple[str, ...]
    when: str

    def __init__(self, row: Row) -> None:
        self.scope, self.action, self.extras, self.when = row.scope, row.action, row.extras, row.when

    @property
    def full_name(self) -> str:
        return f"{self.scope}.{self.action}"

    @property
    def domain(self) -> str:
        """The webhook domain that this kind belongs to."""
        return "discussion" if self.scope.startswith("discussion") else "repo"

    REPO_CREATE = Row("repo", "create", (), "a repo is made; its first commit is part of it")
    REPO_DELETE = Row("repo", "delete", (), "a repo is deleted")
    REPO_MOVE = Row("repo", "move", ("movedTo",), "a repo gets another name or owner")
    REPO_CONTENT = Row("repo.content", "update", ("updatedRefs",), "branches, tags or pull requests point elsewhere")
    REPO_CONFIG = Row("repo.config", "update", ("updatedConfig",), "settings of a repo change")
