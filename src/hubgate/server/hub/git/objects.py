"""Reading objects, by libgit2 and off the event loop. A folder is opened for each task: that costs 60 microseconds and
saves us from sharing anything between threads.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TypeVar

import pygit2
from pygit2.enums import ConfigLevel, FileMode, Option

from hubgate.server.errors import NotFound
from hubgate.server.hub.git.recent import Recent
from hubgate.server.hub.git.threads import in_read_thread
from hubgate.server.jobs.job import checkpoint

T = TypeVar("T")

# Larger ones are streamed by the git program instead of being held in memory whole.
SMALL = 1024 * 1024
LONGEST_POINTER = 1024

_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-[^\n]*\n)*oid sha256:([0-9a-f]{64})\nsize ([0-9]{1,15})\n\Z"
)


# libgit2 remembers commits and trees it has parsed, up to this many bytes in all. A folder is opened for each task, so
# what it remembers is of use to that task alone, and a walk through a long history would fill any amount.
_REMEMBERED = 32 * 1024 * 1024


def prepare() -> None:
    """For the whole process: nothing outside the folder itself decides how it is read or written."""
    pygit2.option(Option.SET_CACHE_MAX_SIZE, _REMEMBERED)
    # Whoever writes sees to it, for all objects at once (`syncing`).
    pygit2.option(Option.ENABLE_FSYNC_GITDIR, False)
    pygit2.option(Option.SET_OWNER_VALIDATION, False)
    for level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL):
        pygit2.option(Option.SET_SEARCH_PATH, level, "")


prepare()


class EntryType(Enum):
    FILE = "file"
    DIRECTORY = "directory"


@dataclass(frozen=True, slots=True)
class Pointer:
    """What stands in git for a large file."""

    oid: str
    size: int
    pointer_size: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or a directory at a commit. A symbolic link is a file that holds its target, as it is in git; `size` is
    the large file's where there is a pointer.
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


async def opened(folder: Path, work: Callable[[pygit2.Repository], T]) -> T:
    """`work` in a thread, on the folder. It only reads, so it may stop at a checkpoint."""
    return await in_read_thread(lambda: work(repository(folder)))


def repository(folder: Path) -> pygit2.Repository:
    try:
        return pygit2.Repository(str(folder))
    except pygit2.GitError:
        # Deleted meanwhile.
        raise NotFound("Repository not found.", code="RepoNotFound") from None


async def commit_of(folder: Path, text: str) -> str | None:
    """The commit that `text`, a whole or shortened id of it or of a tag, stands for."""

    def work(repo: pygit2.Repository) -> str | None:
        try:
            return str(repo[text].peel(pygit2.Commit).id)
        except (KeyError, ValueError, pygit2.GitError):
            return None

    return await opened(folder, work)


async def commits_of(folder: Path, shas: Iterable[str]) -> dict[str, str]:
    """The commits that tags stand for; what is none, or leads to none, is left out."""

    def work(repo: pygit2.Repository) -> dict[str, str]:
        found = {}
        for sha in shas:
            checkpoint()
            try:
                found[sha] = str(repo[sha].peel(pygit2.Commit).id)
            except (KeyError, ValueError, pygit2.GitError):
                continue
        return found

    return await opened(folder, work)


async def entry_at(folder: Path, commit: str, path: str) -> Entry | None:
    """`path` is relative, without empty, `.` or `..` parts; "" is the root."""
    return await opened(folder, lambda repo: entry_in(repo, tree_of(repo, commit), path))


FileAt = tuple[Entry | None, bytes | None]

# Models are fetched by many: their small files are asked for again and again, and so are those they do not have.
_RECENT: Recent[tuple[str, str, str], FileAt] = Recent(most=16 * 1024 * 1024, most_each=64 * 1024)


async def file_at(folder: Path, commit: str, path: str) -> FileAt:
    """The same, with what stands in git if that is a small file: one task instead of two, none for what is recent."""
    key = (str(folder), commit, path)
    found = _RECENT.get(key)
    if found is None:
        found = await _file_at(folder, commit, path)
        _RECENT.keep(key, found, len(path) + len(found[1] or b""))
    return found


async def _file_at(folder: Path, commit: str, path: str) -> FileAt:
    def work(repo: pygit2.Repository) -> FileAt:
        entry = entry_in(repo, tree_of(repo, commit), path)
        if entry is None or entry.type is not EntryType.FILE:
            return entry, None
        small = entry.pointer is not None or entry.size <= SMALL
        return entry, blob_of(repo, entry.sha).data if small else None

    return await opened(folder, work)


async def small_blob(folder: Path, sha: str) -> bytes:
    """The content of a blob that the caller knows to be small."""
    return await opened(folder, lambda repo: blob_of(repo, sha).data)


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


def entry_in(repo: pygit2.Repository, tree: pygit2.Tree, path: str) -> Entry | None:
    if not path:
        return Entry("", EntryType.DIRECTORY, str(tree.id), 0, FileMode.TREE)
    try:
        found = tree[path]
    except (KeyError, ValueError):
        return None
    return described(repo, path, str(found.id), int(found.filemode))


def described(repo: pygit2.Repository, path: str, sha: str, mode: int) -> Entry | None:
    """None for what has no content here: a submodule."""
    if mode == FileMode.TREE:
        return Entry(path, EntryType.DIRECTORY, sha, 0, mode)
    if mode == FileMode.COMMIT:
        return None
    _, size = repo.odb.read_header(sha)
    pointer = read_pointer(blob_of(repo, sha).data) if size <= LONGEST_POINTER and mode != FileMode.LINK else None
    return Entry(path, EntryType.FILE, sha, pointer.size if pointer else size, mode, pointer)


def read_pointer(content: bytes) -> Pointer | None:
    match = _POINTER.match(content)
    return Pointer(match[1].decode(), int(match[2]), len(content)) if match else None


def pointer_text(oid: str, size: int) -> bytes:
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {size}\n".encode()
