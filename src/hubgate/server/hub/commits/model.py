"""The parsed request for a commit over HTTP, and its result."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file inside the request: `data` in memory if it is small, else `file` on disk."""

    size: int
    data: bytes = b""
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class AddFile:
    path: str
    content: Content
    # The path before a rename, which is deleted.
    old_path: str | None = None


@dataclass(frozen=True, slots=True)
class AddLarge:
    """A large file that was uploaded before, or that the repo has under another path."""

    path: str
    oid: str
    size: int | None = None
    old_path: str | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    path: str
    file: bool
    folder: bool


Operation = AddFile | AddLarge | Delete


@dataclass(frozen=True)
class CommitRequest:
    summary: str
    description: str = ""
    # The head that the client expects; the commit is rejected if the head has changed.
    parent: str | None = None
    operations: Sequence[Operation] = field(default_factory=tuple)

    @property
    def message(self) -> str:
        return f"{self.summary}\n\n{self.description}" if self.description else self.summary


@dataclass(frozen=True, slots=True)
class CommitResult:
    sha: str
    # The number of the pull request that was created.
    pull_request: int | None = None
