"""The files that differ between two commits, a line each, as in git's raw format, with kind and size first."""

from collections.abc import Iterator
from pathlib import Path

import pygit2
from pygit2.enums import FileMode

from hubgate.server.errors import BadRequest
from hubgate.server.hub.git.diffs import EMPTY_TREE, MAX_COMPARED_BYTES
from hubgate.server.hub.git.objects import MAX_POINTER_BYTES, blob_of, read_pointer, read_repository
from hubgate.server.jobs.job import checkpoint

MAX_CHANGED_FILES = 20_000

_BINARY, _TEXT = "B", "T"


async def raw_diff(folder: Path, before: str, after: str) -> str:
    """The changed files, without detection of renames. The size of a large file is that of its content; of a deleted
    file it is the former size.
    """

    def work(repo: pygit2.Repository) -> str:
        new = repo[after].peel(pygit2.Tree)
        is_first = before == EMPTY_TREE
        diff = new.diff_to_tree(swap=True) if is_first else repo[before].peel(pygit2.Tree).diff_to_tree(new)
        if len(diff) > MAX_CHANGED_FILES:
            raise BadRequest(f"More than {MAX_CHANGED_FILES:,} files changed. Compare these revisions in a clone.")
        return "".join(_lines(repo, diff))

    return await read_repository(folder, work)


def _lines(repo: pygit2.Repository, diff: pygit2.Diff) -> Iterator[str]:
    for delta in diff.deltas:
        checkpoint()
        old, new = delta.old_file, delta.new_file
        status, shown = delta.status_char(), new if new.mode else old
        kind, size = _kind_and_size(repo, shown)
        path = shown.raw_path.decode(errors="replace")
        yield f"{kind} {size}\t:{old.mode:06o} {new.mode:06o} {old.id}... {new.id}... {status}\t{path}\n"


def _kind_and_size(repo: pygit2.Repository, file: pygit2.DiffFile) -> tuple[str, int]:
    if file.mode == FileMode.COMMIT:
        return _TEXT, 0
    size = repo.odb.read_header(file.id)[1]
    if size > MAX_COMPARED_BYTES:
        return _BINARY, size
    blob = blob_of(repo, str(file.id))
    pointer = read_pointer(blob.data) if size <= MAX_POINTER_BYTES else None
    return _BINARY if blob.is_binary else _TEXT, pointer.size if pointer else size
