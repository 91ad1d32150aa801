"""Listing what is in a tree: in git's order, from any place on, without reading what comes before it."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pygit2
from pygit2.enums import FileMode

from hubgate.server.hub.git.objects import Entry, EntryType, blob_of, described, entry_in, opened, tree_of
from hubgate.server.jobs.job import checkpoint


@dataclass(frozen=True, slots=True)
class Place:
    """One entry, before anyone has looked at what is in it."""

    path: str
    sha: str
    mode: int

    @property
    def is_folder(self) -> bool:
        return self.mode == FileMode.TREE


async def listed(folder: Path, commit: str, path: str, *, recursive: bool, after: str, most: int) -> list[Entry] | None:
    """At most `most` entries of the folder `path` that come after the mark `after`; None if there is no such folder."""

    def work(repo: pygit2.Repository) -> list[Entry] | None:
        tree = folder_at(repo, commit, path)
        if tree is None:
            return None
        inside = f"{path}/" if path else ""
        places = walk(repo, tree, inside, recursive=recursive, after=after)
        return list(islice(_entries(repo, places), most))

    return await opened(folder, work)


async def entries_at(folder: Path, commit: str, paths: list[str]) -> list[Entry]:
    """Those of `paths` that there are."""

    def work(repo: pygit2.Repository) -> list[Entry]:
        return list(_found(repo, tree_of(repo, commit), paths))

    return await opened(folder, work)


async def names_at(folder: Path, commit: str, paths: list[str]) -> set[str]:
    """Those of `paths` that there are, submodules too; without empty, `.` or `..` parts."""

    def work(repo: pygit2.Repository) -> set[str]:
        tree = tree_of(repo, commit)
        return {path for path in paths if path in tree}

    return await opened(folder, work)


async def size_of_folders(folder: Path, commit: str, paths: Iterable[str]) -> int:
    """The bytes of the trees themselves that stand for these folders, as far as there are any."""

    def work(repo: pygit2.Repository) -> int:
        size = 0
        for path in paths:
            checkpoint()
            tree = folder_at(repo, commit, path)
            size += len(tree.read_raw()) if tree is not None else 0
        return size

    return await opened(folder, work)


# To have its start a file is read whole.
LARGEST_STARTED = 10 * 1024 * 1024


async def starts_at(folder: Path, commit: str, paths: list[str], most: int) -> list[tuple[str, bytes]]:
    """Path and the first `most` bytes of those of `paths` that are files in git itself, and not huge: in one task."""

    def work(repo: pygit2.Repository) -> list[tuple[str, bytes]]:
        entries = _found(repo, tree_of(repo, commit), paths)
        in_git = [entry for entry in entries if entry.type is EntryType.FILE and entry.pointer is None]
        small = [entry for entry in in_git if entry.size <= LARGEST_STARTED]
        return [(entry.path, blob_of(repo, entry.sha).data[:most]) for entry in small]

    return await opened(folder, work)


async def file_names(folder: Path, commit: str) -> list[str]:
    """Every file's path."""

    def work(repo: pygit2.Repository) -> list[str]:
        places = walk(repo, tree_of(repo, commit), "", recursive=True)
        return [place.path for place in places if not place.is_folder and place.mode != FileMode.COMMIT]

    return await opened(folder, work)


async def files(folder: Path, commit: str) -> list[Entry]:
    """Every file, with its size and whether it is a large one."""

    def work(repo: pygit2.Repository) -> list[Entry]:
        places = walk(repo, tree_of(repo, commit), "", recursive=True)
        return list(_entries(repo, (place for place in places if not place.is_folder)))

    return await opened(folder, work)


def _found(repo: pygit2.Repository, tree: pygit2.Tree, paths: list[str]) -> Iterator[Entry]:
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
    repo: pygit2.Repository, tree: pygit2.Tree, inside: str, *, recursive: bool, after: str = ""
) -> Iterator[Place]:
    """A folder comes right before what is in it. `after` is the mark of what was shown last, whether or not it is still
    there: what comes after it in git's order is found by halving.
    """
    name, slash, _ = (after.removeprefix(inside) if after.startswith(inside) else "").partition("/")
    passed = f"{name}{slash}".encode()
    start = bisect_left(range(len(tree)), passed, key=lambda at: _sorted_as(tree[at])) if passed else 0
    for at in range(start, len(tree)):
        checkpoint()
        item = tree[at]
        own_name = _name(item)
        if own_name is None:
            continue
        place = Place(f"{inside}{own_name}", str(item.id), int(item.filemode))
        was_shown = bool(passed) and at == start and _sorted_as(item) == passed
        if not was_shown:
            yield place
        if place.is_folder and recursive:
            below = after if was_shown else ""
            yield from walk(repo, _tree(repo, place), f"{place.path}/", recursive=True, after=below)


def mark_of(entry: Entry) -> str:
    """Where a list goes on after this entry: a folder's has a slash at its end."""
    return f"{entry.path}/" if entry.type is EntryType.DIRECTORY else entry.path


def _name(item: pygit2.Object) -> str | None:
    """None if it is not UTF-8. No push brings such a name, but a folder copied from elsewhere may hold one; no address
    over HTTP leads to it, and JSON cannot spell it.
    """
    try:
        return (item.raw_name or b"").decode()
    except UnicodeDecodeError:
        return None


def _sorted_as(item: pygit2.Object) -> bytes:
    """In git's order a folder's name ends in a slash."""
    name = item.raw_name or b""
    return name + b"/" if item.filemode == FileMode.TREE else name


def _tree(repo: pygit2.Repository, place: Place) -> pygit2.Tree:
    found = repo[place.sha]
    if not isinstance(found, pygit2.Tree):
        raise KeyError(place.sha)
    return found


def _entries(repo: pygit2.Repository, places: Iterator[Place]) -> Iterator[Entry]:
    for place in places:
        checkpoint()
        entry = described(repo, place.path, place.sha, place.mode)
        if entry is not None:
            yield entry
