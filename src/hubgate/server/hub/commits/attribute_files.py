"""Reads the .gitattributes of a commit and of the operations that change it."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from hubgate.server.errors import Unprocessable
from hubgate.server.hub.commits.attributes import (
    ATTRIBUTES_FILE,
    MAX_EVALUATED_BYTES,
    Attributes,
    folders_of,
    with_lines_for,
)
from hubgate.server.hub.commits.model import LARGE_FILE_BYTES, AddFile, AddLargeFile, Content, Delete, Operation
from hubgate.server.hub.git import objects, trees
from hubgate.server.hub.git.threads import in_thread

# The error handler with which bytes that are not UTF-8 are written as they were read.
LOSSLESS = "surrogateescape"
# More files are read in one task instead of from the cache.
MAX_CACHED = 16


async def attributes_after(folder: Path, commit: str | None, operations: Sequence[Operation]) -> Attributes:
    """The attributes after the operations."""
    added_paths = [operation.path for operation in operations if not isinstance(operation, Delete)]
    existing = await attributes_of(
        folder, commit, {directory for path in added_paths for directory in folders_of(path)}
    )
    removed = removed_paths(operations)
    texts = {
        directory: text
        for directory, text in existing.files
        if removed.isdisjoint([_path_in(directory), directory, *folders_of(directory)])
    }
    for operation in operations:
        directory, _, name = operation.path.rpartition("/")
        if name == ATTRIBUTES_FILE and isinstance(operation, AddFile):
            text = await read_content(operation.content, MAX_EVALUATED_BYTES + 1)
            texts[directory] = text.decode(errors=LOSSLESS)
        elif name == ATTRIBUTES_FILE and isinstance(operation, AddLargeFile):
            texts.pop(directory, None)
    return Attributes(_outermost_first(texts.items()))


async def attributes_of(folder: Path, commit: str | None, folders: Collection[str]) -> Attributes:
    """The attributes in these folders and at the root."""
    if commit is None:
        return Attributes([])
    folder_by_path = {_path_in(directory): directory for directory in {"", *folders}}
    found = await _prefixes(folder, commit, list(folder_by_path))
    return Attributes(_outermost_first((folder_by_path[path], text.decode(errors=LOSSLESS)) for path, text in found))


async def _prefixes(folder: Path, commit: str, paths: list[str]) -> Sequence[tuple[str, bytes]]:
    """The paths of files in git and as much of them as is evaluated. Needs no task if all are in the cache, as they are
    after a commit of the same folders.
    """
    cached = [objects.cached_file(folder, commit, path) for path in paths] if len(paths) <= MAX_CACHED else [None]
    found = []
    for path, file in zip(paths, cached, strict=False):
        if file is None or (file[0] is not None and file[0].pointer is None and file[1] is None):
            return await trees.file_prefixes(folder, commit, paths, MAX_EVALUATED_BYTES + 1)
        entry, content = file
        if entry is not None and entry.pointer is None and content is not None:
            found.append((path, content[: MAX_EVALUATED_BYTES + 1]))
    return found


def paths_read_next(operations: Sequence[Operation]) -> list[str]:
    """The .gitattributes that the next commit to the same folders will need."""
    added_paths = [operation.path for operation in operations if not isinstance(operation, Delete)]
    folders = {"", *(directory for path in added_paths for directory in folders_of(path))}
    return [_path_in(directory) for directory in folders] if len(folders) <= MAX_CACHED else []


def _path_in(directory: str) -> str:
    return f"{directory}/{ATTRIBUTES_FILE}" if directory else ATTRIBUTES_FILE


def _outermost_first(texts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted(texts, key=lambda pair: (pair[0].count("/") if pair[0] else -1, pair[0]))


async def start_of_text(folder: Path, commit: str, path: str) -> str | None:
    """The beginning of a file, as much as is evaluated for patterns."""
    found = await trees.file_prefixes(folder, commit, [path], MAX_EVALUATED_BYTES + 1)
    return found[0][1].decode(errors=LOSSLESS) if found else None


async def with_lines(
    folder: Path, parent: str | None, operations: Sequence[Operation], undeclared: Sequence[str]
) -> bytes | None:
    """The whole .gitattributes with a line for each of these paths; None if it has them already."""
    if not undeclared:
        return None
    before = await _text_after(folder, parent, operations)
    text = await in_thread(with_lines_for, before, undeclared)
    if len(text) > LARGE_FILE_BYTES:
        raise _too_many_rules()
    return text if text != before else None


async def _text_after(folder: Path, commit: str | None, operations: Sequence[Operation]) -> bytes:
    """The whole .gitattributes at the root after the operations."""
    for operation in operations:
        if isinstance(operation, AddFile) and operation.path == ATTRIBUTES_FILE:
            return await read_content(operation.content, LARGE_FILE_BYTES)
    if commit is None or ATTRIBUTES_FILE in removed_paths(operations):
        return b""
    entry = await objects.entry_at(folder, commit, ATTRIBUTES_FILE)
    if entry is None or entry.type is not objects.EntryType.FILE:
        return b""
    if entry.pointer is not None:
        raise attributes_too_large()
    if entry.size > LARGE_FILE_BYTES:
        raise _too_many_rules()
    return await objects.small_blob(folder, entry.sha)


def _too_many_rules() -> Unprocessable:
    return Unprocessable(
        f"{ATTRIBUTES_FILE} would have more than {LARGE_FILE_BYTES:,} bytes with a line for each large file of this "
        "commit. Replace its lines with a pattern, such as *.dat, and try again."
    )


def attributes_too_large() -> Unprocessable:
    return Unprocessable(
        f"{ATTRIBUTES_FILE} cannot be a large file itself: git uses it to find out which files are large. "
        f"Commit it as text of at most {LARGE_FILE_BYTES:,} bytes."
    )


def removed_paths(operations: Sequence[Operation]) -> set[str]:
    """The paths of files and folders that are deleted or renamed."""
    deleted = {operation.path for operation in operations if isinstance(operation, Delete)}
    renamed = {operation.old_path for operation in operations if not isinstance(operation, Delete)}
    return deleted | {path for path in renamed if path is not None}


async def read_content(content: Content, max_bytes: int) -> bytes:
    """The beginning of a file in a request."""
    if content.file is None:
        return content.data[:max_bytes]
    return await in_thread(_read_file, content.file, max_bytes)


def _read_file(path: Path, max_bytes: int) -> bytes:
    with path.open("rb") as file:
        return file.read(max_bytes)
