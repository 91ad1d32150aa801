"""Stores a file that was sent inside a commit as a large file, if its name (`.gitattributes`) or size requires that."""

import hashlib
import io
import os
from pathlib import Path

import msgspec

from hubgate.server import failpoint
from hubgate.server.accounts.account_locks import lock_account_by_id
from hubgate.server.hub.commits.model import Content
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.guests.charges import Charge, move_to_large_file
from hubgate.server.hub.lfs import store
from hubgate.server.hub.quotas.quotas import check_file
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.repos.transactions import lock_repo
from hubgate.server.storage.database import Tx

_CHUNK = 1024 * 1024


class StoredFile(msgspec.Struct, frozen=True):
    """A stored large file. `blob_sha` is the id it would have as a git blob, which some clients compare."""

    oid: str
    size: int
    blob_sha: str

    async def link(self, tx: Tx, repo_id: str, now: int, *, by_guest: bool = False) -> None:
        await store.link(tx, repo_id, self.oid, self.size, self.blob_sha, now, by_guest=by_guest)


async def store_content(repos: Repos, repo: Repo, content: Content, charge: Charge | None) -> str:
    """Store content as a large file, link it to the repo, charge a guest for it, and return its SHA-256."""
    stored, now = await store_file(repos, content), repos.clock()
    failpoint.hit("large-file-before-link")

    async def unit(tx: Tx) -> bool:
        if charge is not None:
            await lock_account_by_id(tx, charge.user_id)
        else:
            await check_file(tx, repos, repo.id, stored.oid, stored.size)
        # The lock prevents the sweep from deleting the link before the charge exists.
        await lock_repo(tx, repo.id)
        await stored.link(tx, repo.id, now, by_guest=charge is not None)
        return charge is not None and await move_to_large_file(tx, repo, charge, stored.oid, stored.size, now)

    is_charged = await repos.db.write_long(unit)
    if charge is not None:
        charge.git_bytes -= stored.size
        charge.files |= {stored.oid} if is_charged else set()
    return stored.oid


async def store_file(repos: Repos, content: Content) -> StoredFile:
    oid, blob_sha, temporary = await in_thread(_write_temporary, repos, content)
    await repos.large_files.add(temporary, oid)
    return StoredFile(oid, content.size, blob_sha)


def _write_temporary(repos: Repos, content: Content) -> tuple[str, str, Path]:
    sha256, sha1 = hashlib.sha256(), hashlib.sha1(f"blob {content.size}\0".encode(), usedforsecurity=False)
    temporary = repos.large_files.temporary()
    source = content.file.open("rb") if content.file else io.BytesIO(content.data)
    with source, temporary.open("wb") as file:
        while part := source.read(_CHUNK):
            sha256.update(part)
            sha1.update(part)
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    return sha256.hexdigest(), sha1.hexdigest(), temporary
