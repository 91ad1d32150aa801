"""Writing objects: blobs from files on disk, and commits built from a parent and a list of changes.

A blob is synced with the commit that adds it; commits and tags are synced before they are returned.
"""

import hashlib
import io
import os
import secrets
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import pygit2
from msgspec import Struct
from pygit2.enums import FileMode, ObjectType

from hubgate.server.clock import SECOND
from hubgate.server.errors import NotFound, Unprocessable
from hubgate.server.hub.git.fsync import sync_objects
from hubgate.server.hub.git.objects import FileAt, cached_file, file_in, open_repository, remember_file, tree_of
from hubgate.server.hub.git.threads import in_thread

# Smaller blobs are written too fast to block anything.
_SLOW_BLOB_BYTES = 64 * 1024
_CHUNK = 256 * 1024


class Put(Struct, frozen=True):
    path: str
    sha: str
    mode: int = FileMode.BLOB


class PutContent(Struct, frozen=True):
    """As `Put`, for a small blob that is written together with the commit."""

    path: str
    content: bytes
    mode: int = FileMode.BLOB


class Remove(Struct, frozen=True):
    """Deletion of a path: of a file, of a folder with its content, or of either if both flags are set."""

    path: str
    file: bool = True
    folder: bool = False


Change = Put | Remove
DraftChange = Change | PutContent


class Author(Struct, frozen=True):
    name: str
    email: str

    @classmethod
    def of_user(cls, name: str, base_url: str) -> "Author":
        """The author of a commit over HTTP, with an address of the hub: anyone may clone a history, so users' e-mail
        addresses are not written into it.
        """
        return cls(name, f"{name}@users.noreply.{urlsplit(base_url).hostname}")


class NewCommit(Struct, frozen=True):
    """A commit to be written. `parent` is None for a first commit. `read_next` are the paths of small files that will
    be read from the new commit: they are added to the cache, which saves a task.
    """

    parent: str | None
    changes: Sequence[DraftChange]
    message: str
    author: Author
    now: int
    read_next: Sequence[str] = ()


async def write_blob(folder: Path, content: bytes) -> str:
    return (await write_blobs(folder, [content]))[0]


async def write_blobs(folder: Path, contents: Sequence[bytes]) -> list[str]:
    """Write small blobs in one task."""

    def work() -> list[str]:
        with open_repository(folder) as repo:
            return [_blob(repo, folder, content) for content in contents]

    return await in_thread(work)


async def write_file_as_blob(folder: Path, file: Path) -> str:
    """Write a file on disk as a blob, regardless of its size."""
    return await in_thread(_write_file_as_blob, folder, file)


def _write_file_as_blob(folder: Path, file: Path) -> str:
    with file.open("rb") as source:
        return _write_loose(folder, source, file.stat().st_size)


def _write_loose(folder: Path, source: BinaryIO, size: int) -> str:
    """Write a loose blob (deflated header and content, named by the SHA-1 of both) and return its id. The caller syncs
    it.

    libgit2 would block the whole interpreter while it hashes and compresses; here other threads run.
    """
    # Git's programs put temporary files here too, and housekeeping deletes old ones.
    temporary = folder / "objects/pack" / f"tmp_obj_{secrets.token_hex(8)}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
        with os.fdopen(descriptor, "wb") as file:
            sha = _deflate(source, size, file)
        path = folder / "objects" / sha[:2] / sha[2:]
        path.parent.mkdir(exist_ok=True)
        temporary.replace(path)
    except FileNotFoundError:
        # Deleted concurrently.
        raise NotFound("Repository not found", code="RepoNotFound") from None
    finally:
        temporary.unlink(missing_ok=True)
    return sha


async def write_commit(folder: Path, draft: NewCommit) -> str:
    unchanged = _unchanged_files(folder, draft)
    to_read = [path for path in draft.read_next if path not in unchanged]

    def work() -> tuple[str, list[FileAt]]:
        with open_repository(folder) as repo:
            sha = _write_commit(repo, folder, draft)
            tree = tree_of(repo, sha) if to_read else None
            return sha, [file_in(repo, tree, path) for path in to_read] if tree is not None else []

    sha, files = await in_thread(work)
    for path, file in (*unchanged.items(), *zip(to_read, files, strict=True)):
        remember_file(folder, sha, path, file)
    return sha


def _unchanged_files(folder: Path, draft: NewCommit) -> dict[str, FileAt]:
    """Those files of `read_next` that the commit does not change and the cache has for its parent."""
    if draft.parent is None:
        return {}
    cached = {path: cached_file(folder, draft.parent, path) for path in draft.read_next}
    return {
        path: file
        for path, file in cached.items()
        if file is not None and not any(_affects(change.path, path) for change in draft.changes)
    }


def _affects(changed: str, path: str) -> bool:
    """Whether a change of one path may change what is at the other: one of them is in the other, or they are equal."""
    return not changed or f"{changed}/".startswith(f"{path}/") or f"{path}/".startswith(f"{changed}/")


def _write_commit(repo: pygit2.Repository, folder: Path, draft: NewCommit) -> str:
    stored = [_stored(repo, folder, change) for change in draft.changes]
    removals, additions = _split_changes(stored)
    shas = [change.sha for change in stored if isinstance(change, Put)]
    tree = tree_of(repo, draft.parent) if draft.parent else None
    # Removals first: a commit may turn a folder into a file and vice versa.
    for changes in (removals, additions):
        if changes:
            written = _write_tree(repo, tree, changes, "", shas)
            tree = _as_tree(repo, written) if written else None
    root = tree.id if tree is not None else repo.TreeBuilder().write()
    signature = pygit2.Signature(draft.author.name, draft.author.email, draft.now // SECOND, 0)
    parents = [draft.parent] if draft.parent else []
    commit = str(repo.create_commit(None, signature, signature, draft.message, root, parents))
    sync_objects(folder, [*shas, str(root), commit])
    return commit


def _stored(repo: pygit2.Repository, folder: Path, change: DraftChange) -> Change:
    """Write the blob of a change that has its content."""
    if isinstance(change, PutContent):
        return Put(change.path, _blob(repo, folder, change.content), change.mode)
    return change


@dataclass
class _ChangeTree:
    """The changes below one folder: either all removals or all additions."""

    here: dict[str, Change] = field(default_factory=dict)
    below: dict[str, "_ChangeTree"] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.here or self.below)

    def add(self, parts: Sequence[str], change: Change) -> None:
        name, *rest = parts
        # Only a removal may name both a folder and a path inside it.
        clash = isinstance(change, Put) and (name in self.here if rest else name in self.below)
        if clash or (name in self.here and not rest):
            raise Unprocessable(f"The commit names {change.path} more than once, or as a file and as a folder.")
        if rest:
            self.below.setdefault(name, _ChangeTree()).add(rest, change)
        else:
            self.here[name] = change

    def touches(self, parts: Sequence[str]) -> bool:
        """Whether the path or anything inside it is changed."""
        name, *rest = parts
        if not rest:
            return name in self.here or name in self.below
        return name in self.below and self.below[name].touches(rest)


def _split_changes(changes: Sequence[Change]) -> tuple[_ChangeTree, _ChangeTree]:
    """Split changes into removals and additions. Deleting a path after adding it in the same commit is rejected."""
    removals, additions = _ChangeTree(), _ChangeTree()
    for change in changes:
        parts = change.path.split("/")
        if isinstance(change, Put):
            additions.add(parts, change)
        elif additions.touches(parts):
            raise Unprocessable(f"The commit adds {change.path}, or something in it, and deletes it afterwards.")
        else:
            removals.add(parts, change)
    return removals, additions


def _write_tree(
    repo: pygit2.Repository, before: pygit2.Tree | None, changes: _ChangeTree, prefix: str, shas: list[str]
) -> str | None:
    """Write the tree after the changes and return its id; None if the tree is empty, since git has no empty folders.
    The ids of written trees are appended to `shas`.
    """
    builder = repo.TreeBuilder(before) if before is not None else repo.TreeBuilder()
    for name, change in changes.here.items():
        if isinstance(change, Remove):
            _check_removal(builder, name, change)
    for name, below in changes.below.items():
        _set(builder, name, _write_tree(repo, _subtree(repo, builder, name, prefix), below, f"{prefix}{name}/", shas))
    for name, change in changes.here.items():
        if isinstance(change, Put):
            builder.insert(name, change.sha, _mode(builder, name, change))
        elif _entry(builder, name) is not None:
            builder.remove(name)
    if not len(builder):
        return None
    shas.append(str(builder.write()))
    return shas[-1]


def _mode(builder: pygit2.TreeBuilder, name: str, change: Put) -> int:
    """The mode of the new entry. An executable file stays executable when its content changes."""
    found = _entry(builder, name)
    if found is not None and found.filemode == FileMode.TREE:
        raise Unprocessable(f"{change.path} is a folder.")
    was_executable = found is not None and found.filemode == FileMode.BLOB_EXECUTABLE
    return FileMode.BLOB_EXECUTABLE if was_executable and change.mode == FileMode.BLOB else change.mode


def _entry(builder: pygit2.TreeBuilder, name: str) -> pygit2.Object | None:
    # The library's types omit that the result may be None.
    return builder.get(name)


def _check_removal(builder: pygit2.TreeBuilder, name: str, change: Remove) -> None:
    found = _entry(builder, name)
    is_folder = found is not None and found.filemode == FileMode.TREE
    if found is None or not (change.folder if is_folder else change.file):
        kind = "file" if change.file else "folder"
        raise NotFound(f"A {kind} with this name doesn't exist: {change.path}", code="EntryNotFound")


def _subtree(repo: pygit2.Repository, builder: pygit2.TreeBuilder, name: str, prefix: str) -> pygit2.Tree | None:
    found = _entry(builder, name)
    if found is None:
        return None
    # A submodule is not a folder either: its content is in another repository.
    if found.filemode != FileMode.TREE:
        raise Unprocessable(f"{prefix}{name} is a file.")
    return _as_tree(repo, str(found.id))


def _as_tree(repo: pygit2.Repository, sha: str) -> pygit2.Tree:
    found = repo[sha]
    if not isinstance(found, pygit2.Tree):
        raise KeyError(sha)
    return found


def _set(builder: pygit2.TreeBuilder, name: str, tree: str | None) -> None:
    if tree is not None:
        builder.insert(name, tree, FileMode.TREE)
    elif _entry(builder, name) is not None:
        builder.remove(name)


def _blob(repo: pygit2.Repository, folder: Path, content: bytes) -> str:
    if len(content) < _SLOW_BLOB_BYTES:
        return str(repo.create_blob(content))
    return _write_loose(folder, io.BytesIO(content), len(content))


FilesByPath = Mapping[str, bytes]


async def write_first_commit(folder: Path, files: FilesByPath, message: str, author: Author, now: int) -> str:
    """Write the first commit of a new repo."""

    def work() -> str:
        puts = [PutContent(path, content) for path, content in files.items()]
        with open_repository(folder) as repo:
            return _write_commit(repo, folder, NewCommit(None, puts, message, author, now))

    return await in_thread(work)


def write_squashed_commit(folder: Path, commit: str, message: str, author: Author, now: int) -> str:
    """Write a parentless commit with the tree of another commit."""
    signature = pygit2.Signature(author.name, author.email, now // SECOND, 0)
    with open_repository(folder) as repo:
        new = str(repo.create_commit(None, signature, signature, message, tree_of(repo, commit).id, []))
        sync_objects(folder, [new])
    return new


async def write_merge_commit(
    folder: Path, tree: str, parents: Sequence[str], message: str, author: Author, now: int
) -> str:
    """Write a commit of an existing tree. The caller syncs it."""

    def work() -> str:
        signature = pygit2.Signature(author.name, author.email, now // SECOND, 0)
        with open_repository(folder) as repo:
            return str(repo.create_commit(None, signature, signature, message, tree, list(parents)))

    return await in_thread(work)


async def write_tag(folder: Path, name: str, target: str, message: str, author: Author, now: int) -> str:
    """Write the object of an annotated tag. Written raw, because the library would create a ref as well."""
    when = f"{now // SECOND} +0000"
    text = f"object {target}\ntype commit\ntag {name}\ntagger {author.name} <{author.email}> {when}\n\n{message}\n"

    def work() -> str:
        with open_repository(folder) as repo:
            tag = str(repo.odb.write(ObjectType.TAG, text.encode()))
            sync_objects(folder, [tag])
        return tag

    return await in_thread(work)


def _deflate(source: BinaryIO, size: int, file: BinaryIO) -> str:
    header = b"blob %d\0" % size
    # Speed over size, as git does for loose objects, which are packed later.
    digest, deflater = hashlib.sha1(header, usedforsecurity=False), zlib.compressobj(zlib.Z_BEST_SPEED)
    file.write(deflater.compress(header))
    count = 0
    while part := source.read(_CHUNK):
        count += len(part)
        digest.update(part)
        file.write(deflater.compress(part))
    file.write(deflater.flush())
    if count != size:
        raise ValueError(f"{count} bytes instead of {size}")
    return digest.hexdigest()
