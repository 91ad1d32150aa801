"""Listing the entries of a tree: in git's order, from any position, without reading earlier entries; or by pages."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import pygit2
from msgspec import Struct
from pygit2.enums import FileMode

from hubgate.server.hub.git.objects import EntryType, TreeEntry, blob_of, describe, entry_in, read_repository, tree_of
from hubgate.server.jobs.job import checkpoint


class UnreadEntry(Struct, frozen=True):
    """An entry of a tree whose object has not been read."""

    path: str
    sha: str
    mode: int

    @property
    def is_folder(self) -> bool:
        return self.mode == FileMode.TREE


async def list_entries(
    folder: Path, commit: str, path: str, *, recursive: bool, after: str, limit: int
) -> list[TreeEntry] | None:
    """Up to `limit` entries of the folder `path` that follow the position `after` (`position_of`); None if the folder
    does not exist.
    """

    def work(repo: pygit2.Repository) -> list[TreeEntry] | None:
        tree = folder_at(repo, commit, path)
        if tree is None:
            return None
        prefix = f"{path}/" if path else ""
        unread_entries = walk(repo, tree, prefix, recursive=recursive, after=after)
        return list(islice(_entries(repo, unread_entries), limit))

    return await read_repository(folder, work)


async def entries_at(folder: Path, commit: str, paths: list[str]) -> list[TreeEntry]:
    """The entries of those `paths` that exist."""

    def work(repo: pygit2.Repository) -> list[TreeEntry]:
        return list(_existing(repo, tree_of(repo, commit), paths))

    return await read_repository(folder, work)


async def existing_paths(folder: Path, commit: str, paths: list[str]) -> set[str]:
    """Those `paths` that exist, submodules included. Paths must not have empty, `.` or `..` parts."""

    def work(repo: pygit2.Repository) -> set[str]:
        tree = tree_of(repo, commit)
        return {path for path in paths if path in tree}

    return await read_repository(folder, work)


async def size_of_folders(folder: Path, commit: str, paths: Iterable[str]) -> int:
    """The total bytes of the tree objects of these folders; missing folders count as 0."""

    def work(repo: pygit2.Repository) -> int:
        size = 0
        for path in paths:
            checkpoint()
            tree = folder_at(repo, commit, path)
            size += len(tree.read_raw()) if tree is not None else 0
        return size

    return await read_repository(folder, work)


# Larger files are skipped, because the whole file is read to get its beginning.
MAX_PREFIX_FILE_BYTES = 10 * 1024 * 1024


async def file_prefixes(folder: Path, commit: str, paths: list[str], max_bytes: int) -> list[tuple[str, bytes]]:
    """The path and the first `max_bytes` bytes of those `paths` that are files stored in git, up to
    MAX_PREFIX_FILE_BYTES, read in one task.
    """

    def work(repo: pygit2.Repository) -> list[tuple[str, bytes]]:
        entries = _existing(repo, tree_of(repo, commit), paths)
        in_git = [entry for entry in entries if entry.type is EntryType.FILE and entry.pointer is None]
        small = [entry for entry in in_git if entry.size <= MAX_PREFIX_FILE_BYTES]
        return [(entry.path, blob_of(repo, entry.sha).data[:max_bytes]) for entry in small]

    return await read_repository(folder, work)


async def file_paths(folder: Path, commit: str) -> list[str]:
    """The paths of all files."""

    def work(repo: pygit2.Repository) -> list[str]:
        unread_entries = walk(repo, tree_of(repo, commit), "", recursive=True)
        return [unread.path for unread in unread_entries if not unread.is_folder and unread.mode != FileMode.COMMIT]

    return await read_repository(folder, work)


async def files(folder: Path, commit: str) -> list[TreeEntry]:
    """All files, with size and LFS pointer."""

    def work(repo: pygit2.Repository) -> list[TreeEntry]:
        unread_entries = walk(repo, tree_of(repo, commit), "", recursive=True)
        return list(_entries(repo, (unread for unread in unread_entries if not unread.is_folder)))

    return await read_repository(folder, work)


def _existing(repo: pygit2.Repository, tree: pygit2.Tree, paths: list[str]) -> Iterator[TreeEntry]:
    for path in paths:
        checkpoint()
        if entry := entry_in(repo, tree, path):
            yield entry


def folder_at(repo: pygit2.Repository, commit: str, path: str) -> pygit2.Tree | None:
    tree = tree_of(repo, commit)
    if not path:
        return tree
    try:
        found = tree[path]
    except (KeyError, ValueError):
        return None
    return found if isinstance(found, pygit2.Tree) else None


def walk(
    repo: pygit2.Repository, tree: pygit2.Tree, prefix: str, *, recursive: bool, after: str = ""
) -> Iterator[UnreadEntry]:
    """Yield the entries of a tree, a folder right before its content. `after` is the position of the last entry shown,
    which may no longer exist: the next entry in git's order is found by binary search.
    """
    name, slash, _ = (after.removeprefix(prefix) if after.startswith(prefix) else "").partition("/")
    last_key = f"{name}{slash}".encode()
    start = bisect_left(range(len(tree)), last_key, key=lambda at: _sort_key(tree[at])) if last_key else 0
    for at in range(start, len(tree)):
        checkpoint()
        item = tree[at]
        name_here = _name(item)
        if name_here is None:
            continue
        unread = UnreadEntry(f"{prefix}{name_here}", str(item.id), int(item.filemode))
        was_shown = bool(last_key) and at == start and _sort_key(item) == last_key
        if not was_shown:
            yield unread
        if unread.is_folder and recursive:
            below = after if was_shown else ""
            yield from walk(repo, _tree(repo, unread), f"{unread.path}/", recursive=True, after=below)


def position_of(entry: TreeEntry) -> str:
    """The position from which a list continues after this entry: the path, with a trailing slash for a folder."""
    return f"{entry.path}/" if entry.type is EntryType.DIRECTORY else entry.path


def _name(item: pygit2.Object) -> str | None:
    """The name of an entry; None if it is not UTF-8. A push cannot contain such a name, but a folder copied from
    elsewhere may; it has no HTTP address and JSON cannot represent it.
    """
    try:
        return (item.raw_name or b"").decode()
    except UnicodeDecodeError:
        return None


def _sort_key(item: pygit2.Object) -> bytes:
    """The sort key in git's order, where a folder's name ends in a slash."""
    name = item.raw_name or b""
    return name + b"/" if item.filemode == FileMode.TREE else name


def _tree(repo: pygit2.Repository, unread: UnreadEntry) -> pygit2.Tree:
    found = repo[unread.sha]
    if not isinstance(found, pygit2.Tree):
        raise KeyError(unread.sha)
    return found


def _entries(repo: pygit2.Repository, unread_entries: Iterator[UnreadEntry]) -> Iterator[TreeEntry]:
    for unread in unread_entries:
        checkpoint()
        entry = describe(repo, unread.path, unread.sha, unread.mode)
        if entry is not None:
            yield entry


class FolderPage(Struct, frozen=True):
    entries: list[TreeEntry]
    # Entries in the whole folder.
    total: int


async def folder_page(folder: Path, commit: str, path: str, skip: int, limit: int) -> FolderPage | None:
    """A page of a folder as the web shows it, folders first; None if the folder does not exist. Only the objects of the
    entries on the page are read.
    """

    def work(repo: pygit2.Repository) -> FolderPage | None:
        tree = folder_at(repo, commit, path)
        if tree is None:
            return None
        prefix = f"{path}/" if path else ""
        # A submodule has no content here.
        unread_entries = [
            unread for unread in walk(repo, tree, prefix, recursive=False) if unread.mode != FileMode.COMMIT
        ]
        unread_entries.sort(key=lambda unread: not unread.is_folder)
        shown = (_entry(repo, unread) for unread in unread_entries[skip : skip + limit])
        return FolderPage([entry for entry in shown if entry], len(unread_entries))

    return await read_repository(folder, work)


async def count_files(folder: Path, commit: str, limit: int, path: str = "") -> int:
    """Count the files in the folder `path` of a commit, up to `limit`."""

    def work(repo: pygit2.Repository) -> int:
        tree = folder_at(repo, commit, path)
        unread_entries = walk(repo, tree, "", recursive=True) if tree is not None else iter(())
        return sum(1 for _ in islice((unread for unread in unread_entries if not unread.is_folder), limit))

    return await read_repository(folder, work)


def _entry(repo: pygit2.Repository, unread: UnreadEntry) -> TreeEntry | None:
    return describe(repo, unread.path, unread.sha, unread.mode)
