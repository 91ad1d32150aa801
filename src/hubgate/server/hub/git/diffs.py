"""The changes of a commit against its first parent, and of a pull request against its target branch, limited in size;
a clone shows the rest.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path

import pygit2
from msgspec import Struct
from pygit2.enums import FileMode

from hubgate.server.errors import NotFound
from hubgate.server.hub.git import program
from hubgate.server.hub.git.history import Commit, commit_of_object
from hubgate.server.hub.git.objects import MAX_POINTER_BYTES, blob_of, read_pointer, read_repository
from hubgate.server.jobs.job import checkpoint

MAX_FILES = 100
MAX_LINES = 1_000
MAX_FILE_BYTES = 64 * 1024
MAX_LINE_LENGTH = 500
# Of a diff as text.
MAX_DIFF_BYTES = 1024 * 1024
# Git compares larger files as binary ones: it would read both sides into memory.
MAX_COMPARED_BYTES = 16 * 1024 * 1024

# The id that git gives a folder without files, compared with the first commit.
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

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


class Changes(Struct, frozen=True):
    files: tuple[FileChange, ...] = ()
    # The number of changed files, shown or not.
    total: int = 0


class CommitDiff(Changes, frozen=True, kw_only=True):
    commit: Commit
    parents: tuple[str, ...]


async def commit_diff(folder: Path, sha: str, *, content: bool) -> CommitDiff:
    """The changes of a commit. With `content` changed lines are included, otherwise only the names of the files."""

    def work(repo: pygit2.Repository) -> CommitDiff:
        commit = repo[sha]
        if not isinstance(commit, pygit2.Commit):
            raise NotFound(f"Invalid rev id: {sha}", code="RevisionNotFound")
        parents = commit.parent_ids
        before = _commit(repo, parents[0]).tree if parents else None
        changes = _changes(repo, before, commit.tree, content=content)
        found, shas = commit_of_object(commit), tuple(map(str, parents))
        return CommitDiff(changes.files, changes.total, commit=found, parents=shas)

    return await read_repository(folder, work)


async def changes_between(folder: Path, before: str, after: str, *, content: bool) -> Changes:
    """The changes from one commit to another."""

    def work(repo: pygit2.Repository) -> Changes:
        trees = [_commit(repo, pygit2.Oid(hex=sha)).tree for sha in (before, after)]
        return _changes(repo, trees[0], trees[1], content=content)

    return await read_repository(folder, work)


async def changes_of_paths(folder: Path, before: str, after: str, paths: Collection[str]) -> Changes:
    """The changes of these files from one commit to another, with changed lines."""

    def work(repo: pygit2.Repository) -> Changes:
        trees = [_commit(repo, pygit2.Oid(hex=sha)).tree for sha in (before, after)]
        diff = trees[0].diff_to_tree(trees[1])
        deltas = [delta for delta in diff.deltas if not _paths(delta).isdisjoint(paths)]
        return _described(repo, deltas, len(deltas), content=True)

    return await read_repository(folder, work)


async def merge_base(folder: Path, one: str, other: str, seconds: float) -> str | None:
    """The best common ancestor of two commits; None if there is no common ancestor."""
    status, output = await program.run_with_status(
        ["merge-base", one, other], folder, seconds=seconds, low_priority=True, accepted=(0, 1)
    )
    return output.decode().split()[0] if status == 0 else None


async def unified_diff(folder: Path, before: str, after: str, seconds: float) -> str:
    """The changes from one commit to another as text, as git prints them: complete lines, up to MAX_DIFF_BYTES."""
    options = ["--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"]
    command = ["-c", f"core.bigFileThreshold={MAX_COMPARED_BYTES}", "diff", *options, before, after, "--"]
    # Not line by line: a line may be as long as a file.
    printed = await program.beginning(command, folder, MAX_DIFF_BYTES, seconds)
    return printed[: printed.rfind(b"\n") + 1].decode(errors="replace")


def _changes(repo: pygit2.Repository, before: pygit2.Tree | None, after: pygit2.Tree, *, content: bool) -> Changes:
    diff = before.diff_to_tree(after) if before else after.diff_to_tree(swap=True)
    return _described(repo, diff.deltas, len(diff), content=content)


def _described(repo: pygit2.Repository, deltas: Iterable[pygit2.DiffDelta], total: int, *, content: bool) -> Changes:
    remaining, files = MAX_LINES, []
    for delta in islice(deltas, MAX_FILES):
        checkpoint()
        change = _change(repo, delta, remaining if content else 0)
        remaining -= len(change.lines)
        files.append(change)
    return Changes(tuple(files), total)


def _paths(delta: pygit2.DiffDelta) -> set[str]:
    return {file.raw_path.decode(errors="replace") for file in (delta.old_file, delta.new_file)}


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
