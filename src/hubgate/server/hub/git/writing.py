"""Writing objects: blobs from files on disk, and a commit on top of another from what changes.

A blob is synced with the commit that puts it somewhere; commits and tags are synced when they are returned.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pygit2
from pygit2.enums import FileMode, ObjectType

from hubgate.server.clock import SECOND
from hubgate.server.errors import NotFound, Unprocessable
from hubgate.server.hub.git.loose import LARGE, write_loose
from hubgate.server.hub.git.objects import repository, tree_of
from hubgate.server.hub.git.syncing import sync_objects
from hubgate.server.hub.git.threads import in_thread


@dataclass(frozen=True, slots=True)
class Put:
    path: str
    sha: str
    mode: int = FileMode.BLOB


@dataclass(frozen=True, slots=True)
class Remove:
    """A file, a folder with all in it, or whichever is there."""

    path: str
    file: bool = True
    folder: bool = False


Change = Put | Remove


@dataclass(frozen=True, slots=True)
class Author:
    name: str
    email: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A commit to be: `parent` is None for the first one."""

    parent: str | None
    changes: Sequence[Change]
    message: str
    author: Author
    now: int


async def write_blob(folder: Path, content: bytes) -> str:
    return await in_thread(lambda: str(repository(folder).create_blob(content)))


async def write_blob_of(folder: Path, file: Path) -> str:
    """The content of a file on disk, however large."""
    return await in_thread(_blob_of, folder, file)


def _blob_of(folder: Path, file: Path) -> str:
    with file.open("rb") as source:
        return write_loose(folder, source, file.stat().st_size)


async def write_commit(folder: Path, draft: Draft) -> str:
    return await in_thread(commit_in, folder, draft)


def commit_in(folder: Path, draft: Draft) -> str:
    repo = repository(folder)
    removals, additions = _sorted(draft.changes)
    made = [change.sha for change in draft.changes if isinstance(change, Put)]
    tree = tree_of(repo, draft.parent) if draft.parent else None
    # First what goes: a commit may turn a folder into a file and the other way round.
    for changes in (removals, additions):
        if changes:
            written = _written(repo, tree, changes, "", made)
            tree = _as_tree(repo, written) if written else None
    root = tree.id if tree is not None else repo.TreeBuilder().write()
    who = pygit2.Signature(draft.author.name, draft.author.email, draft.now // SECOND, 0)
    parents = [draft.parent] if draft.parent else []
    commit = str(repo.create_commit(None, who, who, draft.message, root, parents))
    sync_objects(folder, [*made, str(root), commit])
    return commit


@dataclass
class _Branching:
    """The changes below one folder, all of one kind."""

    here: dict[str, Change] = field(default_factory=dict)
    below: dict[str, "_Branching"] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.here or self.below)

    def add(self, parts: Sequence[str], change: Change) -> None:
        name, *rest = parts
        # Only what goes may be named with something inside of it.
        clash = isinstance(change, Put) and (name in self.here if rest else name in self.below)
        if clash or (name in self.here and not rest):
            raise Unprocessable(f"The commit names {change.path} more than once, or as a file and as a folder.")
        if rest:
            self.below.setdefault(name, _Branching()).add(rest, change)
        else:
            self.here[name] = change

    def touches(self, parts: Sequence[str]) -> bool:
        """Whether anything is changed at this path or inside of it."""
        name, *rest = parts
        if not rest:
            return name in self.here or name in self.below
        return name in self.below and self.below[name].touches(rest)


def _sorted(changes: Sequence[Change]) -> tuple[_Branching, _Branching]:
    """What goes and what comes. Whatever is deleted after it came in the same commit would be a riddle."""
    removals, additions = _Branching(), _Branching()
    for change in changes:
        parts = change.path.split("/")
        if isinstance(change, Put):
            additions.add(parts, change)
        elif additions.touches(parts):
            raise Unprocessable(f"The commit adds {change.path}, or something in it, and deletes it afterwards.")
        else:
            removals.add(parts, change)
    return removals, additions


def _written(
    repo: pygit2.Repository, before: pygit2.Tree | None, changes: _Branching, at: str, made: list[str]
) -> str | None:
    """The tree after the changes; None if nothing is left in it, for git knows no empty folders. `made` gets what was
    written.
    """
    builder = repo.TreeBuilder(before) if before is not None else repo.TreeBuilder()
    for name, change in changes.here.items():
        if isinstance(change, Remove):
            _check_removal(builder, name, change)
    for name, below in changes.below.items():
        _set(builder, name, _written(repo, _folder(repo, builder, name, at), below, f"{at}{name}/", made))
    for name, change in changes.here.items():
        if isinstance(change, Put):
            builder.insert(name, change.sha, _mode(builder, name, change))
        elif _at(builder, name) is not None:
            builder.remove(name)
    if not len(builder):
        return None
    made.append(str(builder.write()))
    return made[-1]


def _mode(builder: pygit2.TreeBuilder, name: str, change: Put) -> int:
    """A program stays one when its text changes."""
    found = _at(builder, name)
    if found is not None and found.filemode == FileMode.TREE:
        raise Unprocessable(f"{change.path} is a folder.")
    was_program = found is not None and found.filemode == FileMode.BLOB_EXECUTABLE
    return FileMode.BLOB_EXECUTABLE if was_program and change.mode == FileMode.BLOB else change.mode


def _at(builder: pygit2.TreeBuilder, name: str) -> pygit2.Object | None:
    # The library's types do not say that there may be none.
    return builder.get(name)


def _check_removal(builder: pygit2.TreeBuilder, name: str, change: Remove) -> None:
    found = _at(builder, name)
    is_folder = found is not None and found.filemode == FileMode.TREE
    if found is None or not (change.folder if is_folder else change.file):
        kind = "file" if change.file else "folder"
        raise NotFound(f"A {kind} with this name doesn't exist: {change.path}", code="EntryNotFound")


def _folder(repo: pygit2.Repository, builder: pygit2.TreeBuilder, name: str, at: str) -> pygit2.Tree | None:
    found = _at(builder, name)
    if found is None:
        return None
    # Also a submodule is none: what is in it is not here.
    if found.filemode != FileMode.TREE:
        raise Unprocessable(f"{at}{name} is a file.")
    return _as_tree(repo, str(found.id))


def _as_tree(repo: pygit2.Repository, sha: str) -> pygit2.Tree:
    found = repo[sha]
    if not isinstance(found, pygit2.Tree):
        raise KeyError(sha)
    return found


def _set(builder: pygit2.TreeBuilder, name: str, tree: str | None) -> None:
    if tree is not None:
        builder.insert(name, tree, FileMode.TREE)
    elif _at(builder, name) is not None:
        builder.remove(name)


def _blob(repo: pygit2.Repository, folder: Path, content: bytes) -> str:
    if len(content) < LARGE:
        return str(repo.create_blob(content))
    return write_loose(folder, io.BytesIO(content), len(content))


FilesByPath = Mapping[str, bytes]


async def write_first_commit(folder: Path, files: FilesByPath, message: str, author: Author, now: int) -> str:
    """The commit a new repo begins with."""

    def work() -> str:
        repo = repository(folder)
        puts = [Put(path, _blob(repo, folder, content)) for path, content in files.items()]
        return commit_in(folder, Draft(None, puts, message, author, now))

    return await in_thread(work)


def commit_of_tree(folder: Path, commit: str, message: str, author: Author, now: int) -> str:
    """A first commit with the tree of another."""
    repo = repository(folder)
    who = pygit2.Signature(author.name, author.email, now // SECOND, 0)
    new = str(repo.create_commit(None, who, who, message, tree_of(repo, commit).id, []))
    sync_objects(folder, [new])
    return new


async def write_tag(folder: Path, name: str, target: str, message: str, author: Author, now: int) -> str:
    """An annotated tag's object. Written raw: the library would make a ref for it too."""
    when = f"{now // SECOND} +0000"
    text = f"object {target}\ntype commit\ntag {name}\ntagger {author.name} <{author.email}> {when}\n\n{message}\n"

    def work() -> str:
        tag = str(repository(folder).odb.write(ObjectType.TAG, text.encode()))
        sync_objects(folder, [tag])
        return tag

    return await in_thread(work)
