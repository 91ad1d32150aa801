"""Keeping a file that came inside a commit as a large file, because `.gitattributes` wants it so."""

import hashlib
import io
import os
from pathlib import Path

import msgspec

from hubgate.server.hub.commits.model import Content
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.guests import store as guest_store
from hubgate.server.hub.guests.charging import Charge, add_kept
from hubgate.server.hub.lfs import store
from hubgate.server.hub.repos.model import Repo
from hubgate.server.storage.database import Tx

_CHUNK = 1024 * 1024


class Kept(msgspec.Struct, frozen=True):
    """What it would be called as a git blob is kept beside its SHA-256, for clients that compare by that."""

    oid: str
    size: int
    blob_sha: str

    async def link(self, tx: Tx, repo_id: str, now: int, *, by_guest: bool = False) -> None:
        await store.link(tx, repo_id, self.oid, self.size, self.blob_sha, now, by_guest=by_guest)


async def keep_content(repos: Repos, repo: Repo, content: Content, charge: Charge | None) -> str:
    """Its SHA-256. From here on the repo has the file; a guest is charged for it."""
    kept, now = await keep(repos, content), repos.clock()

    async def unit(tx: Tx) -> bool:
        if charge is not None:
            await guest_store.hold_user(tx, charge.user_id)
        await kept.link(tx, repo.id, now, by_guest=charge is not None)
        return charge is not None and await add_kept(tx, repo, charge, kept.oid, kept.size, now)

    is_charged = await repos.db.write(unit)
    if charge is not None:
        charge.in_git -= kept.size
        charge.files |= {kept.oid} if is_charged else set()
    return kept.oid


async def keep(repos: Repos, content: Content) -> Kept:
    oid, blob_sha, draft = await in_thread(_drafted, repos, content)
    # Also over the same file: one that no repo has may be about to go (`forgetting`).
    await repos.large_files.keep(draft, oid)
    return Kept(oid, content.size, blob_sha)


def _drafted(repos: Repos, content: Content) -> tuple[str, str, Path]:
    sha256, sha1 = hashlib.sha256(), hashlib.sha1(f"blob {content.size}\0".encode(), usedforsecurity=False)
    draft = repos.large_files.draft()
    source = content.file.open("rb") if content.file else io.BytesIO(content.text)
    with source, draft.open("wb") as file:
        while part := source.read(_CHUNK):
            sha256.update(part)
            sha1.update(part)
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    return sha256.hexdigest(), sha1.hexdigest(), draft
