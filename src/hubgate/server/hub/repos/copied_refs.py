"""The copy of the refs on disk, for the git program only.

The copy is a single file, packed-refs, replaced atomically. A second file stores the version of the copied refs: a
caller that finds an outdated version writes a new copy. The rows are read again under the lock, so that a slow process
never overwrites a newer copy.
"""

import asyncio
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

from hubgate.server.errors import NotFound
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.repos import store
from hubgate.server.jobs.caller import as_background
from hubgate.server.storage.database import Tx
from hubgate.server.storage.fsync import sync_path

_VERSION_FILE = "hubgate-generation"
_HEADER = "# pack-refs with: sorted \n"
_RETRY_SECONDS = 0.01


async def refresh(repos: Repos, repo_id: str) -> Path:
    """Update the copy if it is outdated and return the folder. The refs are those at the time of the call, or newer."""
    folder = repos.folders.of(repo_id)
    while await in_thread(_version_on_disk, folder) != await store.refs_version(repos.db, repo_id):
        lock = await in_thread(_lock, folder)
        if lock is None:
            # Do not wait in a thread: waiting callers would occupy the threads that the lock's owner needs.
            await asyncio.sleep(_RETRY_SECONDS)
            continue
        try:
            # Not limited per caller, since every fetch from this repo waits for the lock.
            with as_background():
                version, pairs = await repos.db.read_long(lambda tx: _refs(tx, repo_id))
            await in_thread(_write, folder, version, pairs)
        finally:
            os.close(lock)
        break
    return folder


async def _refs(tx: Tx, repo_id: str) -> tuple[str, Sequence[tuple[str, str]]]:
    """The version and the refs. The version is read first: refs newer than their version are merely copied again."""
    version = await store.refs_version(tx, repo_id)
    if version is None:
        raise NotFound("Repository not found", code="RepoNotFound")
    return version, await store.refs(tx, repo_id)


def _version_on_disk(folder: Path) -> str:
    try:
        return (folder / _VERSION_FILE).read_text()
    except FileNotFoundError:
        return ""


def _lock(folder: Path) -> int | None:
    """Lock the copy until the descriptor is closed or the process dies; None if the lock is taken."""
    try:
        descriptor = os.open(folder / "hubgate-refs.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        raise NotFound("Repository not found", code="RepoNotFound") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _write(folder: Path, version: str, pairs: Sequence[tuple[str, str]]) -> None:
    lines = "".join(f"{sha} {name}\n" for name, sha in pairs)
    refs = folder / "packed-refs"
    _replace(refs, _HEADER + lines)
    # After a power failure, a version without its refs would make empty or outdated refs look current. A lost version
    # does no harm: the refs are copied again.
    sync_path(refs)
    sync_path(folder)
    _replace(folder / _VERSION_FILE, version)


def _replace(file: Path, text: str) -> None:
    temporary = file.with_name(f"{file.name}.new")
    temporary.write_text(text)
    temporary.replace(file)
