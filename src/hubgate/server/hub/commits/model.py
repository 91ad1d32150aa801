"""The parsed request for a commit over HTTP, and its result."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, field

# Larger files are stored as large files even if .gitattributes does not match them. Also the maximum size of
# .gitattributes itself, to which lines are added in memory; a few hundred thousand lines are enough.
LARGE_FILE_BYTES = 10 * 1024 * 1024


class Content(Struct, frozen=True):
    """The content of a file inside the request: `data` in memory if it is small, else `file` on disk."""

    size: int
    data: bytes = b""
    file: Path | None = None


class AddFile(Struct, frozen=True):
    path: str
    content: Content
    # The path before a rename, which is deleted.
    old_path: str | None = None
    # Stored as a large file even if neither its name nor its size requires that.
    as_large: bool = False


class AddLargeFile(Struct, frozen=True):
    """A large file that was uploaded before, or that the repo has under another path."""

    path: str
    oid: str
    size: int | None = None
    old_path: str | None = None


class Delete(Struct, frozen=True):
    """Deletion of a path: of a file, of a folder with its content, or of either if both flags are set."""

    path: str
    file: bool
    folder: bool


Operation = AddFile | AddLargeFile | Delete


class CommitRequest(Struct, frozen=True):
    summary: str
    description: str = ""
    # The head that the client expects; the commit is rejected if the head has changed.
    parent: str | None = None
    operations: Sequence[Operation] = field(default_factory=tuple)

    @property
    def message(self) -> str:
        return f"{self.summary}\n\n{self.description}" if self.description else self.summary


class CommitResult(Struct, frozen=True):
    sha: str
    # The number of the pull request that was created.
    pull_request: int | None = None
