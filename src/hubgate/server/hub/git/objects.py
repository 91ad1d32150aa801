"""Reading objects with libgit2, off the event loop. A folder is opened for each task: that costs 60 microseconds and
avoids sharing state between threads.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Generic, TypeVar

import pygit2
from msgspec import Struct
from pygit2.enums import ConfigLevel, FileMode, Option

from hubgate.server.errors import NotFound
from hubgate.server.hub.git.threads import in_read_thread
from hubgate.server.jobs.job import checkpoint

K = TypeVar("K")
V = TypeVar("V")

# Approximate bytes that an entry takes in addition to its content.
_OVERHEAD = 600


class SizedCache(Generic[K, V]):
    """LRU cache for values that cannot change, such as a path at a commit. Only the event loop accesses it. `max_bytes`
    limits the total size; values larger than `max_entry_bytes` are not cached.
    """

    def __init__(self, max_bytes: int, max_entry_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._max_entry_bytes = max_entry_bytes
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: K) -> V | None:
        found = self._entries.get(key)
        if found is None:
            return None
        self._entries.move_to_end(key)
        return found[0]

    def add(self, key: K, value: V, size: int) -> None:
        if size > self._max_entry_bytes or key in self._entries:
            return
        size += _OVERHEAD
        self._entries[key] = value, size
        self._bytes += size
        while self._bytes > self._max_bytes:
            _, (_, dropped_size) = self._entries.popitem(last=False)
            self._bytes -= dropped_size

    def __len__(self) -> int:
        return len(self._entries)


T = TypeVar("T")

# Larger blobs are streamed by the git program instead of being read into memory.
MAX_BLOB_IN_MEMORY = 1024 * 1024
MAX_POINTER_BYTES = 1024

_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-[^\n]*\n)*oid sha256:([0-9a-f]{64})\nsize ([0-9]{1,15})\n\Z"
)


# libgit2 caches parsed commits and trees, up to this many bytes in total. A folder is opened for each task, so a cache
# serves only that task, and a walk through a long history would fill a cache of any size.
_CACHE_BYTES = 32 * 1024 * 1024


def configure_libgit2() -> None:
    """Configure libgit2 for the process: no configuration outside the folder affects reads or writes."""
    pygit2.option(Option.SET_CACHE_MAX_SIZE, _CACHE_BYTES)
    # Writers sync all objects of a change at once (`fsync.py`).
    pygit2.option(Option.ENABLE_FSYNC_GITDIR, False)
    pygit2.option(Option.SET_OWNER_VALIDATION, False)
    for level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL):
        pygit2.option(Option.SET_SEARCH_PATH, level, "")


configure_libgit2()


class EntryType(Enum):
    FILE = "file"
    DIRECTORY = "directory"


class Pointer(Struct, frozen=True):
    """The LFS pointer that git stores in place of a large file."""

    oid: str
    size: int
    pointer_size: int


class TreeEntry(Struct, frozen=True):
    """A file or a directory at a commit. A symbolic link is a file that contains its target, as in git. `size` is that
    of the large file if there is a pointer.
    """

    path: str
    type: EntryType
    sha: str
    size: int
    mode: int
    pointer: Pointer | None = None

    @property
    def etag(self) -> str:
        return self.pointer.oid if self.pointer else self.sha


async def read_repository(folder: Path, work: Callable[[pygit2.Repository], T]) -> T:
    """Run read-only `work` on the repository in a thread. The work may stop at a checkpoint."""

    def in_repository() -> T:
        with open_repository(folder) as repo:
            return work(repo)

    return await in_read_thread(in_repository)


@contextmanager
def open_repository(folder: Path) -> Iterator[pygit2.Repository]:
    """The repository at a folder. Raises NotFound if it is deleted while it is used."""
    try:
        yield repository(folder)
    except (KeyError, ValueError, OSError, pygit2.GitError):
        if folder.exists():
            raise
        raise NotFound("Repository not found", code="RepoNotFound") from None


def repository(folder: Path) -> pygit2.Repository:
    try:
        return pygit2.Repository(str(folder))
    except pygit2.GitError:
        # Deleted concurrently.
        raise NotFound("Repository not found", code="RepoNotFound") from None


async def commit_of(folder: Path, text: str) -> str | None:
    """The commit with the full or abbreviated id `text`, which may also be the id of a tag."""

    def work(repo: pygit2.Repository) -> str | None:
        try:
            return str(repo[text].peel(pygit2.Commit).id)
        except (KeyError, ValueError, pygit2.GitError):
            return None

    return await read_repository(folder, work)


async def parents_of(folder: Path, commit: str) -> list[str]:
    """The ids of a commit's parents."""
    return await read_repository(folder, lambda repo: [str(sha) for sha in repo[commit].peel(pygit2.Commit).parent_ids])


async def commits_of(folder: Path, shas: Iterable[str]) -> dict[str, str]:
    """The commits that tags point to; tags that do not point to a commit are omitted."""

    def work(repo: pygit2.Repository) -> dict[str, str]:
        found = {}
        for sha in shas:
            checkpoint()
            try:
                found[sha] = str(repo[sha].peel(pygit2.Commit).id)
            except (KeyError, ValueError, pygit2.GitError):
                continue
        return found

    return await read_repository(folder, work)


async def entry_at(folder: Path, commit: str, path: str) -> TreeEntry | None:
    """The entry at a path, which is relative, without empty, `.` or `..` parts; "" is the root."""
    return await read_repository(folder, lambda repo: entry_in(repo, tree_of(repo, commit), path))


FileAt = tuple[TreeEntry | None, bytes | None]

# Small files of popular models are requested again and again, and so are files that do not exist.
_FILE_CACHE: SizedCache[tuple[str, str, str], FileAt] = SizedCache(
    max_bytes=16 * 1024 * 1024, max_entry_bytes=64 * 1024
)


async def file_at(folder: Path, commit: str, path: str) -> FileAt:
    """The entry at a path, with its content in git if it is a small file. Reads both in one task, or from a cache."""
    found = cached_file(folder, commit, path)
    if found is None:
        found = await read_repository(folder, lambda repo: file_in(repo, tree_of(repo, commit), path))
        remember_file(folder, commit, path, found)
    return found


def cached_file(folder: Path, commit: str, path: str) -> FileAt | None:
    """The result of `file_at`, if it is in the cache. Called on the event loop."""
    return _FILE_CACHE.get((str(folder), commit, path))


def remember_file(folder: Path, commit: str, path: str, found: FileAt) -> None:
    """Add what `file_in` found to the cache. Called on the event loop."""
    _FILE_CACHE.add((str(folder), commit, path), found, len(path) + len(found[1] or b""))


def file_in(repo: pygit2.Repository, tree: pygit2.Tree, path: str) -> FileAt:
    """The entry at a path, with its content in git if it is a small file."""
    entry = entry_in(repo, tree, path)
    if entry is None or entry.type is not EntryType.FILE:
        return entry, None
    small = entry.pointer is not None or entry.size <= MAX_BLOB_IN_MEMORY
    return entry, blob_of(repo, entry.sha).data if small else None


async def small_blob(folder: Path, sha: str) -> bytes:
    """The content of a blob that the caller knows to be small."""
    return await read_repository(folder, lambda repo: blob_of(repo, sha).data)


def tree_of(repo: pygit2.Repository, commit: str) -> pygit2.Tree:
    found = repo[commit]
    if not isinstance(found, pygit2.Commit):
        raise NotFound(f"Invalid rev id: {commit}", code="RevisionNotFound")
    return found.tree


def blob_of(repo: pygit2.Repository, sha: str) -> pygit2.Blob:
    found = repo[sha]
    if not isinstance(found, pygit2.Blob):
        raise KeyError(sha)
    return found


def entry_in(repo: pygit2.Repository, tree: pygit2.Tree, path: str) -> TreeEntry | None:
    if not path:
        return TreeEntry("", EntryType.DIRECTORY, str(tree.id), 0, FileMode.TREE)
    try:
        found = tree[path]
    except (KeyError, ValueError):
        return None
    return describe(repo, path, str(found.id), int(found.filemode))


def describe(repo: pygit2.Repository, path: str, sha: str, mode: int) -> TreeEntry | None:
    """Describe an entry of a tree; None for a submodule, whose content is in another repository."""
    if mode == FileMode.TREE:
        return TreeEntry(path, EntryType.DIRECTORY, sha, 0, mode)
    if mode == FileMode.COMMIT:
        return None
    _, size = repo.odb.read_header(sha)
    pointer = read_pointer(blob_of(repo, sha).data) if size <= MAX_POINTER_BYTES and mode != FileMode.LINK else None
    return TreeEntry(path, EntryType.FILE, sha, pointer.size if pointer else size, mode, pointer)


def read_pointer(content: bytes) -> Pointer | None:
    match = _POINTER.match(content)
    return Pointer(match[1].decode(), int(match[2]), len(content)) if match else None


def pointer_text(oid: str, size: int) -> bytes:
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {size}\n".encode()
