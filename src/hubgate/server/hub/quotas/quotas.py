"""Checks whether an owner has room for more large files, before they are stored."""

from collections.abc import Collection

from msgspec import Struct

from hubgate.server.errors import Forbidden, NotFound
from hubgate.server.hub.context import Repos
from hubgate.server.hub.quotas import store
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import REPO_GONE, Repo, RepoOwner
from hubgate.server.hub.repos.transactions import lock_owner
from hubgate.server.storage.database import Database, Tx


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


async def limit_of(tx: Tx | Database, repos: Repos, kind: str, owner_id: str) -> int:
    """The quota of an owner; 0 if there is no limit."""
    exception = await store.exception(tx, kind, owner_id)
    return repos.storage_quota if exception is None else exception


async def usage_of(repos: Repos, kind: str, owner_id: str) -> Usage:
    limit = await limit_of(repos.db, repos, kind, owner_id)
    return Usage(await repos.db.read_long(lambda tx: store.used(tx, owner_id)), limit)


async def check_announced(repos: Repos, repo: Repo, size: int) -> None:
    """Reject an upload whose size is announced. What is stored is checked again by the functions below."""
    if size and await limit_of(repos.db, repos, repo.owner_kind, repo.owner_id):
        (await usage_of(repos, repo.owner_kind, repo.owner_id)).check(repo.owner_name, size)


async def check_file(tx: Tx, repos: Repos, repo_id: str, oid: str, size: int) -> None:
    """Reject a file that is stored as one object and exceeds the quota. Locks the owner, before any lock on the repo,
    so that concurrent uploads cannot exceed the quota together.
    """
    found = await _lock_limited_owner(tx, repos, repo_id)
    if found is not None and not await store.has_file(tx, found[0].id, oid):
        Usage(await store.used(tx, found[0].id), found[1]).check(found[0].name, size)


async def check_xorb(tx: Tx, repos: Repos, repo_id: str, xorb_id: str, size: int) -> None:
    """Reject a xorb of `size` bytes that exceeds the quota. Locks the owner like `check_file`."""
    found = await _lock_limited_owner(tx, repos, repo_id)
    if found is not None and not await store.has_xorb(tx, found[0].id, xorb_id):
        Usage(await store.used(tx, found[0].id), found[1]).check(found[0].name, size)


async def check_references(tx: Tx, repos: Repos, repo_id: str, xorbs: Collection[str]) -> None:
    """Reject references to stored xorbs, perhaps of other owners, that exceed the quota. Locks the owner like
    `check_file`.
    """
    found = await _lock_limited_owner(tx, repos, repo_id)
    if found is not None:
        owner, limit = found
        added = await store.size_of_new_xorbs(tx, owner.id, xorbs)
        Usage(await store.used(tx, owner.id), limit).check(owner.name, added)


async def used_if_limited(tx: Tx, repos: Repos, owner: RepoOwner) -> int | None:
    """The bytes that a locked owner uses; None if the owner has no limit."""
    return await store.used(tx, owner.id) if await limit_of(tx, repos, owner.kind, owner.id) else None


async def check_added(tx: Tx, repos: Repos, owner: RepoOwner, used_before: int | None) -> None:
    """Reject a move that made a locked owner exceed the quota."""
    if used_before is not None:
        limit, used = await limit_of(tx, repos, owner.kind, owner.id), await store.used(tx, owner.id)
        Usage(used_before, limit).check(owner.name, used - used_before)


async def _lock_limited_owner(tx: Tx, repos: Repos, repo_id: str) -> tuple[RepoOwner, int] | None:
    """Lock the owner of a repo and return it with its quota; None if it has none."""
    repo = await repo_store.by_id(tx, repo_id)
    if repo is None:
        raise NotFound(REPO_GONE, code="RepoNotFound")
    limit = await limit_of(tx, repos, repo.owner_kind, repo.owner_id)
    if not limit:
        return None
    return await lock_owner(tx, RepoOwner(repo.owner_kind, repo.owner_id, repo.owner_name)), limit
