"""The refs on disk: a copy for the git program, never asked by anyone else.

It is one file, packed-refs, replaced whole. Beside it stands the generation of the refs it was made from: whoever finds
that behind makes it anew. Under the lock the rows are read again, so a slow copier never puts back what is older.
"""

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.repos import store
from hubgate.server.storage.database import Tx

_GENERATION = "hubgate-generation"
_HEADER = "# pack-refs with: sorted \n"


async def refresh(repos: Repos, repo_id: str) -> Path:
    """The folder, with refs as they are in the database now, or newer."""
    folder = repos.folders.of(repo_id)
    current = await store.generation(repos.db, repo_id)
    if current is not None and await in_thread(_generation_on_disk, folder) != current:
        lock = await in_thread(_lock, folder)
        try:
            generation, pairs = await repos.db.read_long(lambda tx: _refs(tx, repo_id))
            await in_thread(_write, folder, generation, pairs)
        finally:
            os.close(lock)
    return folder


async def _refs(tx: Tx, repo_id: str) -> tuple[int, Sequence[tuple[str, str]]]:
    generation = await store.generation(tx, repo_id)
    return generation or 0, await store.refs(tx, repo_id)


def _generation_on_disk(folder: Path) -> int:
    try:
        return int((folder / _GENERATION).read_text())
    except (FileNotFoundError, ValueError):
        return -1


def _lock(folder: Path) -> int:
    """Held until the descriptor is closed, by this process or by its death."""
    descriptor = os.open(folder / "hubgate-refs.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def _write(folder: Path, generation: int, pairs: Sequence[tuple[str, str]]) -> None:
    lines = "".join(f"{sha} {name}\n" for name, sha in pairs)
    _replace(folder / "packed-refs", _HEADER + lines)
    _replace(folder / _GENERATION, f"{generation}\n")


def _replace(file: Path, text: str) -> None:
    draft = file.with_name(f"{file.name}.new")
    draft.write_text(text)
    draft.replace(file)
