"""The refs on disk: a copy for the git program, never asked by anyone else.

It is one file, packed-refs, replaced whole. Beside it stands the mark of the refs it was made from: whoever finds that
out of date makes it anew. Under the lock the rows are read again, so a slow copier never puts back what is older.
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

_MARK = "hubgate-generation"
_HEADER = "# pack-refs with: sorted \n"
_TRY_AGAIN_AFTER = 0.01


async def refresh(repos: Repos, repo_id: str) -> Path:
    """The folder, with refs as they are in the database now, or newer."""
    folder = repos.folders.of(repo_id)
    while await in_thread(_mark_on_disk, folder) != await store.refs_mark(repos.db, repo_id):
        lock = await in_thread(_lock, folder)
        if lock is None:
            # Not waited for in a thread: those who wait would take the threads that the holder needs.
            await asyncio.sleep(_TRY_AGAIN_AFTER)
            continue
        try:
            # Whoever fetches from this repo waits for the lock.
            with as_background():
                mark, pairs = await repos.db.read_long(lambda tx: _refs(tx, repo_id))
            await in_thread(_write, folder, mark, pairs)
        finally:
            os.close(lock)
        break
    return folder


async def _refs(tx: Tx, repo_id: str) -> tuple[str, Sequence[tuple[str, str]]]:
    """The mark first: refs that are newer than it are merely copied once more."""
    mark = await store.refs_mark(tx, repo_id)
    if mark is None:
        raise NotFound("Repository not found.", code="RepoNotFound")
    return mark, await store.refs(tx, repo_id)


def _mark_on_disk(folder: Path) -> str:
    try:
        return (folder / _MARK).read_text()
    except FileNotFoundError:
        return ""


def _lock(folder: Path) -> int | None:
    """Held until the descriptor is closed, by this process or by its death; None while another has it."""
    try:
        descriptor = os.open(folder / "hubgate-refs.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        raise NotFound("Repository not found.", code="RepoNotFound") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _write(folder: Path, mark: str, pairs: Sequence[tuple[str, str]]) -> None:
    lines = "".join(f"{sha} {name}\n" for name, sha in pairs)
    _replace(folder / "packed-refs", _HEADER + lines)
    _replace(folder / _MARK, mark)


def _replace(file: Path, text: str) -> None:
    draft = file.with_name(f"{file.name}.new")
    draft.write_text(text)
    draft.replace(file)
