"""The changes of a commit against its first parent, limited in size; a clone shows the rest."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pygit2
from msgspec import Struct
from pygit2.enums import FileMode

from hubgate.server.errors import NotFound
from hubgate.server.hub.git.history import Commit, commit_of_object
from hubgate.server.hub.git.objects import MAX_POINTER_BYTES, blob_of, read_pointer, read_repository
from hubgate.server.jobs.job import checkpoint

MAX_FILES = 100
MAX_LINES = 1_000
MAX_FILE_BYTES = 64 * 1024
MAX_LINE_LENGTH = 500

_KINDS = {"A": "added", "D": "deleted"}


class DiffLine(Struct, frozen=True):
    # " ", "+", "-", or "@" for a hunk header.
    origin: str
    text: str


class FileChange(Struct, frozen=True):
    path: str
    # "added", "deleted" or "changed".
    kind: str
    lines: tuple[DiffLine, ...] = ()
    # Why lines are missing; "" if they are complete.
    reason: str = ""


class CommitDiff(Struct, frozen=True):
    commit: Commit
    parents: tuple[str, ...]
    files: tuple[FileChange, ...]
    # The number of changed files, shown or not.
    total: int


async def commit_diff(folder: Path, sha: str, *, content: bool) -> CommitDiff:
    """The changes of a commit. With `content` changed lines are included, otherwise only the names of the files."""

    def work(repo: pygit2.Repository) -> CommitDiff:
        commit = repo[sha]
        if not isinstance(commit, pygit2.Commit):
            raise NotFound(f"Invalid rev id: {sha}", code="RevisionNotFound")
        parents = commit.parent_ids
        before = _commit(repo, parents[0]).tree if parents else None
        diff = before.diff_to_tree(commit.tree) if before else commit.tree.diff_to_tree(swap=True)
        remaining, files = MAX_LINES, []
        for delta in islice(diff.deltas, MAX_FILES):
            checkpoint()
            change = _change(repo, delta, remaining if content else 0)
            remaining -= len(change.lines)
            files.append(change)
        return CommitDiff(commit_of_object(commit), tuple(map(str, parents)), tuple(files), len(diff))

    return await read_repository(folder, work)


def _commit(repo: pygit2.Repository, sha: pygit2.Oid) -> pygit2.Commit:
    found = repo[sha]
    if not isinstance(found, pygit2.Commit):
        raise KeyError(sha)
    return found


def _change(repo: pygit2.Repository, delta: pygit2.DiffDelta, max_lines: int) -> FileChange:
    kind = _KINDS.get(delta.status_char(), "changed")
    path = (delta.old_file if kind == "deleted" else delta.new_file).raw_path.decode(errors="replace")
    sides = [file for file in (delta.old_file, delta.new_file) if file.mode]
    if any(file.mode == FileMode.COMMIT for file in sides):
        return FileChange(path, kind, reason="A submodule.")
    if max_lines <= 0:
        return FileChange(path, kind)
    if any(repo.odb.read_header(file.id)[1] > MAX_FILE_BYTES for file in sides):
        return FileChange(path, kind, reason="Too large to show.")
    blobs = [blob_of(repo, str(file.id)) for file in sides]
    if any(blob.size <= MAX_POINTER_BYTES and read_pointer(blob.data) for blob in blobs):
        return FileChange(path, kind, reason="A large file, stored outside git.")
    if any(blob.is_binary for blob in blobs):
        return FileChange(path, kind, reason="Not text.")
    lines = tuple(islice(_lines(kind, blobs), max_lines + 1))
    if len(lines) > max_lines:
        return FileChange(path, kind, lines[:max_lines], "The rest is not shown.")
    return FileChange(path, kind, lines)


def _lines(kind: str, blobs: list[pygit2.Blob]) -> Iterator[DiffLine]:
    if len(blobs) == 1:
        origin = "-" if kind == "deleted" else "+"
        yield from (_line(origin, raw) for raw in blobs[0].data.splitlines())
        return
    for hunk in blobs[0].diff(blobs[1]).hunks:
        yield _line("@", hunk.header.encode())
        # Other origins mark a missing line break at the end of the file.
        yield from (_line(line.origin, line.raw_content) for line in hunk.lines if line.origin in " +-")


def _line(origin: str, raw: bytes) -> DiffLine:
    text = raw.decode(errors="replace").rstrip("\r\n")
    return DiffLine(origin, text if len(text) <= MAX_LINE_LENGTH else text[:MAX_LINE_LENGTH] + "…")
