"""Checks whether an owner has room for more large files, before they are stored.

Counting the bytes of an owner takes time for each file, so the hub stores the figure and adds to it what is uploaded.
What is deleted is not subtracted: the figure is never too low, and the bytes are counted again if it exceeds the quota,
and after an hour in any case.
"""

from collections.abc import Collection

from msgspec import Struct

from hubgate.server.clock import HOUR
from hubgate.server.errors import Forbidden, NotFound
from hubgate.server.hub.context import Repos
from hubgate.server.hub.quotas import store
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import REPO_GONE, Repo, RepoOwner
from hubgate.server.hub.repos.transactions import lock_owner
from hubgate.server.storage.database import Database, Tx

FIGURE_AGE = HOUR


class QuotaExceeded(Forbidden):
    """The owner of a repo has no room for an upload."""

    code = "StorageQuotaExceeded"


class Usage(Struct, frozen=True):
    """The bytes that an owner uses. `limit` is 0 if there is no limit."""

    used: int
    limit: int

    def check(self, owner: str, size: int) -> None:
        if self.limit and size and self.used + size > self.limit:
            raise QuotaExceeded(
                f"{owner} may store {self.limit:,} bytes of large files and uses {self.used:,}; "
                f"this adds {size:,}. Delete repos that are not needed, or ask the operator of this hub for more."
            )


class LimitedOwner(Struct, frozen=True):
    """An owner with a quota, locked until the transaction ends."""

    id: str
    name: str
    limit: int


async def limit_of(tx: Tx | Database, repos: Repos, kind: str, owner_id: str) -> int:
    """The quota of an owner; 0 if there is no limit."""
    exception = await store.exception(tx, kind, owner_id)
    return repos.storage_quota if exception is None else exception


async def usage_of(repos: Repos, kind: str, owner_id: str) -> Usage:
    limit = await limit_of(repos.db, repos, kind, owner_id)
    return Usage(await repos.db.read_long(lambda tx: store.count_used(tx, owner_id)), limit)


async def check_announced(repos: Repos, repo: Repo, size: int) -> None:
    """Reject an upload whose size is announced. What is stored is checked again by the functions below."""
    limit = await limit_of(repos.db, repos, repo.owner_kind, repo.owner_id) if size else 0
    if not limit:
        return
    used = await store.used_since(repos.db, repo.owner_id, repos.clock() - FIGURE_AGE)
    if used is None or used + size > limit:
        (await usage_of(repos, repo.owner_kind, repo.owner_id)).check(repo.owner_name, size)


async def lock_limited_owner(tx: Tx, repos: Repos, repo_id: str) -> LimitedOwner | None:
    """Lock the owner of a repo, so that concurrent uploads cannot exceed the quota together; None if it has none. To be
    called before the repo is locked.
    """
    repo = await repo_store.by_id(tx, repo_id)
    if repo is None:
        raise NotFound(REPO_GONE, code="RepoNotFound")
    limit = await limit_of(tx, repos, repo.owner_kind, repo.owner_id)
    if not limit:
        return None
    owner = await lock_owner(tx, RepoOwner(repo.owner_kind, repo.owner_id, repo.owner_name))
    return LimitedOwner(owner.id, owner.name, limit)


async def check_file(tx: Tx, repos: Repos, repo_id: str, oid: str, size: int) -> None:
    """Reject a file that is stored as one object and exceeds the quota. Locks the owner."""
    owner = await lock_limited_owner(tx, repos, repo_id)
    if owner is not None and not await store.has_file(tx, owner.id, oid):
        # If a guest uploaded the same file, perhaps as chunks, that becomes the owner's.
        await _add(tx, repos, owner, max(size, await _size_of_guests_files(tx, owner, repo_id, [oid])))


async def check_xorb(tx: Tx, repos: Repos, repo_id: str, xorb_id: str, size: int) -> None:
    """Reject a xorb that exceeds the quota, whether it is stored already or not. Locks the owner."""
    owner = await lock_limited_owner(tx, repos, repo_id)
    if owner is not None and not await store.has_xorb(tx, owner.id, xorb_id):
        await _add(tx, repos, owner, size)


async def check_use(
    tx: Tx, repos: Repos, owner: LimitedOwner | None, repo_id: str, oids: Collection[str], xorbs: Collection[str] = ()
) -> None:
    """Reject what exceeds the quota: files that guests uploaded and that become the owner's, and references to stored
    xorbs, perhaps of other owners. Other files are ignored.
    """
    if owner is not None:
        await _add(tx, repos, owner, await _size_of_guests_files(tx, owner, repo_id, oids, xorbs))


async def _size_of_guests_files(
    tx: Tx, owner: LimitedOwner, repo_id: str, oids: Collection[str], xorbs: Collection[str] = ()
) -> int:
    found = await store.xorbs_of_guests_files(tx, repo_id, oids)
    size = await store.size_of_guests_files(tx, owner.id, repo_id, oids)
    return size + await store.size_of_new_xorbs(tx, owner.id, sorted(found.union(xorbs)))


async def _add(tx: Tx, repos: Repos, owner: LimitedOwner, size: int) -> None:
    """Count bytes that are about to be stored, or reject them."""
    if not size:
        return
    now = repos.clock()
    used = await store.used_since(tx, owner.id, now - FIGURE_AGE)
    if used is None or used + size > owner.limit:
        used = await store.count_used(tx, owner.id)
        await store.set_used(tx, owner.id, used, now)
    Usage(used, owner.limit).check(owner.name, size)
    await store.add_used(tx, owner.id, size)


async def used_if_limited(tx: Tx, repos: Repos, owner: RepoOwner) -> int | None:
    """The bytes that a locked owner uses; None if the owner has no limit."""
    return await store.count_used(tx, owner.id) if await limit_of(tx, repos, owner.kind, owner.id) else None


async def check_moved(tx: Tx, repos: Repos, owner: RepoOwner, used_before: int | None) -> None:
    """Reject the move of a repo that made a locked owner exceed the quota."""
    if used_before is not None:
        limit, used = await limit_of(tx, repos, owner.kind, owner.id), await store.count_used(tx, owner.id)
        Usage(used_before, limit).check(owner.name, used - used_before)
        await store.set_used(tx, owner.id, used, repos.clock())
