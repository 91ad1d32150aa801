"""What a commit over HTTP asks for."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Content:
    """Of one file that came inside the request: in memory while it is small, else in a file of its own."""

    size: int
    text: bytes = b""
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class AddFile:
    path: str
    content: Content
    # What the file was called before: it goes.
    old_path: str | None = None


@dataclass(frozen=True, slots=True)
class AddLarge:
    """A file that was uploaded before, or that the repo has under another path."""

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
class Request:
    summary: str
    description: str = ""
    # What the sender saw at the head; the commit is refused if that is no longer it.
    parent: str | None = None
    operations: Sequence[Operation] = field(default_factory=tuple)

    @property
    def message(self) -> str:
        return f"{self.summary}\n\n{self.description}" if self.description else self.summary


@dataclass(frozen=True, slots=True)
class Committed:
    sha: str
    # The number of the pull request it made.
    pull_request: int | None = None
