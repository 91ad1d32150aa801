"""Writing objects: blobs from files on disk, and a commit on top of another from what changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pygit2
from pygit2.enums import FileMode, ObjectType

from hubgate.server.clock import SECOND
from hubgate.server.errors import NotFound, Unprocessable
from hubgate.server.hub.git.objects import repository, tree_of
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
    return await in_thread(lambda: str(repository(folder).create_blob_fromdisk(str(file))))


async def write_commit(folder: Path, draft: Draft) -> str:
    return await in_thread(commit_in, folder, draft)


def commit_in(folder: Path, draft: Draft) -> str:
    repo = repository(folder)
    root = _Branching()
    for change in draft.changes:
        root.add(change.path.split("/"), change)
    before = tree_of(repo, draft.parent) if draft.parent else None
    tree = _written(repo, before, root, "") or str(repo.TreeBuilder().write())
    who = pygit2.Signature(draft.author.name, draft.author.email, draft.now // SECOND, 0)
    parents = [draft.parent] if draft.parent else []
    return str(repo.create_commit(None, who, who, draft.message, tree, parents))


@dataclass
class _Branching:
    """The changes below one folder."""

    here: dict[str, Change] = field(default_factory=dict)
    below: dict[str, "_Branching"] = field(default_factory=dict)

    def add(self, parts: Sequence[str], change: Change) -> None:
        name, *rest = parts
        clash = name in self.below if not rest else name in self.here
        if (name in self.here and not rest) or (clash and isinstance(change, Put)):
            raise Unprocessable(f"The commit names {change.path} more than once, or as a file and as a folder.")
        if rest:
            self.below.setdefault(name, _Branching()).add(rest, change)
        else:
            self.here[name] = change


def _written(repo: pygit2.Repository, before: pygit2.Tree | None, changes: _Branching, at: str) -> str | None:
    """The tree after the changes; None if nothing is left in it, for git knows no empty folders."""
    builder = repo.TreeBuilder(before) if before is not None else repo.TreeBuilder()
    # Removals first: a commit may turn a folder into a file and the other way round.
    for name, change in changes.here.items():
        if isinstance(change, Remove):
            _remove(builder, name, change)
    for name, below in changes.below.items():
        tree = _written(repo, _folder(repo, builder, name, at), below, f"{at}{name}/")
        _set(builder, name, tree)
    for name, change in changes.here.items():
        if isinstance(change, Put):
            found = _at(builder, name)
            if found is not None and found.filemode == FileMode.TREE:
                raise Unprocessable(f"{change.path} is a folder.")
            builder.insert(name, change.sha, change.mode)
    return str(builder.write()) if len(builder) else None


def _at(builder: pygit2.TreeBuilder, name: str) -> pygit2.Object | None:
    # The library's types do not say that there may be none.
    return builder.get(name)


def _remove(builder: pygit2.TreeBuilder, name: str, change: Remove) -> None:
    found = _at(builder, name)
    is_folder = found is not None and found.filemode == FileMode.TREE
    if found is None or not (change.folder if is_folder else change.file):
        kind = "file" if change.file else "folder"
        raise NotFound(f"A {kind} with this name doesn't exist: {change.path}", code="EntryNotFound")
    builder.remove(name)


def _folder(repo: pygit2.Repository, builder: pygit2.TreeBuilder, name: str, at: str) -> pygit2.Tree | None:
    found = _at(builder, name)
    if found is None:
        return None
    tree = repo[found.id]
    if not isinstance(tree, pygit2.Tree):
        raise Unprocessable(f"{at}{name} is a file.")
    return tree


def _set(builder: pygit2.TreeBuilder, name: str, tree: str | None) -> None:
    if tree is not None:
        builder.insert(name, tree, FileMode.TREE)
    elif _at(builder, name) is not None:
        builder.remove(name)


FilesByPath = Mapping[str, bytes]


async def write_first_commit(folder: Path, files: FilesByPath, message: str, author: Author, now: int) -> str:
    """The commit a new repo begins with."""

    def work() -> str:
        repo = repository(folder)
        puts = [Put(path, str(repo.create_blob(content))) for path, content in files.items()]
        return commit_in(folder, Draft(None, puts, message, author, now))

    return await in_thread(work)


def commit_of_tree(folder: Path, commit: str, message: str, author: Author, now: int) -> str:
    """A first commit with the tree of another."""
    repo = repository(folder)
    who = pygit2.Signature(author.name, author.email, now // SECOND, 0)
    return str(repo.create_commit(None, who, who, message, tree_of(repo, commit).id, []))


async def write_tag(folder: Path, name: str, target: str, message: str, author: Author, now: int) -> str:
    """An annotated tag's object. Written raw: the library would make a ref for it too."""
    when = f"{now // SECOND} +0000"
    text = f"object {target}\ntype commit\ntag {name}\ntagger {author.name} <{author.email}> {when}\n\n{message}\n"
    return await in_thread(lambda: str(repository(folder).odb.write(ObjectType.TAG, text.encode())))
