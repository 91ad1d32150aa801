"""Charges guests for their storage, before anything is stored (attack O72).

A charge is pending until a pull request uses the bytes. Git storage stays charged even if no pull request uses it,
since git objects are never deleted. The charge for a large file ends only when the file is deleted or becomes the
owner's (`sweep`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from hubgate.server import failpoint
from hubgate.server.access.actions import Action
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.accounts.account_locks import lock_account_by_id
from hubgate.server.errors import Forbidden
from hubgate.server.hub.context import Repos
from hubgate.server.hub.guests import store
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.repos.transactions import lock_repo
from hubgate.server.storage.database import Database, Tx

# A guest may have this many refs of pull requests, closed ones included, for each open pull request that the limit
# allows. Every clone receives all refs.
REFS_PER_OPEN_PULL_REQUEST = 10
# Minimum charge for a file: otherwise rows for empty files would cost nothing.
MIN_FILE_CHARGE = 4096
DISCUSSIONS_BY_WRITERS_ONLY = "On this hub, only users who may write to a repo can open discussions in it."
WRITERS_ONLY = "On this hub, only users who may write to a repo can open pull requests in it."
# Bytes charged for a discussion or comment, in addition to its text.
TEXT_OVERHEAD = 1024
# Files that a short transaction can process.
MAX_FILES_IN_SHORT_TX = 100


@dataclass
class Charge:
    """The charges for one commit or push of a guest so far."""

    user_id: str
    # The number of the pull request; 0 until it is created.
    num: int = 0
    git_bytes: int = 0
    # The ids of large files that only guests uploaded.
    files: set[str] = field(default_factory=set)
    # The push is not a fast-forward. Replaced commits stay on disk even after the rest is merged.
    is_non_fast_forward: bool = False

    @property
    def needs_long_transaction(self) -> bool:
        return len(self.files) > MAX_FILES_IN_SHORT_TX


def charge_of(repo: Repo, identity: Identity, num: int = 0) -> Charge | None:
    """A new charge; None if the caller may write to the repo. A writer's app without write permission is a guest."""
    if identity.user_id is None or decide(identity, Action.REPO_WRITE, repo.as_resource()).allowed:
        return None
    return Charge(identity.user_id, num)


async def bytes_charged(repos: Repos, charge: Charge) -> int:
    """The bytes charged to the user, including the part of this charge that is already recorded."""
    return await repos.db.read_long(lambda tx: store.bytes_charged(tx, charge.user_id))


async def charge_git_storage(repos: Repos, repo: Repo, charge: Charge, size: int) -> None:
    """Charge for git storage; raise Forbidden without charging if the user would exceed the limit."""
    now = repos.clock()

    async def unit(tx: Tx) -> None:
        await _check_storage_limit(tx, repos, charge.user_id, size)
        await lock_repo(tx, repo.id)
        # Recorded under the negated number until the pull request uses the bytes.
        await store.charge_git(tx, charge.user_id, repo.id, -charge.num, size, now)

    # Summing up a guest's files may take a long time.
    await repos.db.write_long(unit)
    charge.git_bytes += size


async def charge_uploads(repos: Repos, repo: Repo, user_id: str, sizes: Mapping[str, int]) -> None:
    """Charge a guest for large files that will be uploaded."""
    if repos.guest_pull_requests == 0:
        raise Forbidden(WRITERS_ONLY)
    now = repos.clock()

    async def unit(tx: Tx) -> None:
        await lock_account_by_id(tx, user_id)
        await lock_repo(tx, repo.id)
        await charge_files(tx, repos, user_id, repo.id, sizes, now)

    await repos.db.write_long(unit)


async def use_files(repos: Repos, repo: Repo, charge: Charge | None, oids: Collection[str]) -> set[str]:
    """Record that a commit or push references large files, and return those that the repo does not have. A guest is
    charged for files that only guests uploaded; files referenced by a writer become the owner's.
    """
    if not oids:
        return set()
    found = await repos.db.read_long(lambda tx: store.links_among(tx, repo.id, oids))
    others = set(oids).difference(found.of_owner)
    if not others:
        return set()
    now = repos.clock()
    failpoint.hit("guest-files-found")

    async def unit(tx: Tx) -> set[str]:
        if charge is not None:
            await lock_account_by_id(tx, charge.user_id)
        # The sweep may have deleted files, and cannot delete more until this transaction ends.
        await lock_repo(tx, repo.id)
        current = await store.links_among(tx, repo.id, others)
        if charge is None:
            await store.assign_to_owner(tx, repo.id, current.of_guests)
        else:
            await charge_files(tx, repos, charge.user_id, repo.id, current.of_guests, now)
            charge.files.update(current.of_guests)
        return others.difference(current.of_guests, current.of_owner)

    return await repos.db.write_long(unit)


async def move_to_large_file(tx: Tx, repo: Repo, charge: Charge, oid: str, size: int, now: int) -> bool:
    """Turn the charge for a file inside a commit, recorded by `charge_git_storage`, into a charge for a large file;
    return whether the file is charged. If the owner has the file too, nothing is charged. The transaction must have
    locked the user and the repo.
    """
    await store.charge_git(tx, charge.user_id, repo.id, -charge.num, -size, now)
    only_of_guests = bool((await store.links_among(tx, repo.id, [oid])).of_guests)
    if only_of_guests:
        await store.charge(tx, charge.user_id, repo.id, 0, {oid: max(size, MIN_FILE_CHARGE)}, now)
    return only_of_guests


async def assign_to_pull_request(tx: Tx, repo_id: str, num: int, charge: Charge, now: int) -> None:
    """Assign a charge to a pull request whose ref has moved. The transaction must have locked the user first."""
    if charge.is_non_fast_forward:
        await store.move_replaced_charges(tx, repo_id, num)
    files = await store.files_charged(tx, charge.user_id, repo_id, charge.files)
    await store.charge(tx, charge.user_id, repo_id, num, files, now)
    await store.drop_pending(tx, charge.user_id, repo_id, files)
    await store.set_needed(tx, repo_id, charge.files, await lock_repo(tx, repo_id))
    if charge.git_bytes:
        await store.charge_git(tx, charge.user_id, repo_id, -charge.num, -charge.git_bytes, now)
        await store.charge_git(tx, charge.user_id, repo_id, num, charge.git_bytes, now)


async def charge_text(tx: Tx, repos: Repos, repo: Repo, charge: Charge, num: int, size: int, now: int) -> None:
    """Charge for a text in discussion `num`. The text stays charged until the discussion is removed: the charge is
    recorded under the negated number, so that a merge does not release it. The transaction must have locked the user.
    """
    size += TEXT_OVERHEAD
    await _check_storage_limit(tx, repos, charge.user_id, size)
    await store.charge_git(tx, charge.user_id, repo.id, -num, size, now)


async def check_discussions(tx: Tx, repos: Repos, repo: Repo, user_id: str) -> None:
    """Raise Forbidden if a guest may not open another discussion. The transaction must have locked the repo."""
    limit = repos.guest_pull_requests
    if limit == 0:
        raise Forbidden(DISCUSSIONS_BY_WRITERS_ONLY)
    if await store.count_open_discussions(tx, repo.id, user_id) >= limit:
        raise Forbidden(
            f"You have {limit:,} open discussions in this repo, the maximum for users who may not write to it. "
            "Close one first."
        )


async def check_pull_requests(tx: Tx | Database, repos: Repos, repo: Repo, user_id: str) -> None:
    """Raise Forbidden if a guest may not open another pull request. Called before anything is stored, and again in the
    transaction that opens it and has locked the repo.
    """
    limit = repos.guest_pull_requests
    if limit == 0:
        raise Forbidden(WRITERS_ONLY)
    if await store.count_open_pull_requests(tx, repo.id, user_id) >= limit:
        raise Forbidden(
            f"You have {limit:,} open pull requests in this repo, the maximum for users who may not write to it. "
            "Close one, or wait until one is merged."
        )


async def check_refs(tx: Tx | Database, repos: Repos, repo: Repo, user_id: str) -> None:
    """Raise Forbidden if a guest may not have another ref of a pull request, open or closed."""
    limit = repos.guest_pull_requests
    if await store.count_pull_request_refs(tx, repo.id, user_id) >= limit * REFS_PER_OPEN_PULL_REQUEST:
        raise Forbidden(
            f"You have {limit * REFS_PER_OPEN_PULL_REQUEST:,} pull requests in this repo, closed ones included. "
            "Delete the refs of closed ones first."
        )


async def charge_files(tx: Tx, repos: Repos, user_id: str, repo_id: str, sizes: Mapping[str, int], now: int) -> None:
    """Charge a guest for large files, or parts of them, in a transaction that has locked the user and the repo."""
    sizes = {oid: max(size, MIN_FILE_CHARGE) for oid, size in sizes.items()}
    charged = await store.files_charged(tx, user_id, repo_id, sizes)
    added = sum(max(size - charged.get(oid, 0), 0) for oid, size in sizes.items())
    await _check_storage_limit(tx, repos, user_id, added)
    await store.charge(tx, user_id, repo_id, 0, sizes, now)


async def _check_storage_limit(tx: Tx, repos: Repos, user_id: str, size: int) -> None:
    await lock_account_by_id(tx, user_id)
    charged, limit = await store.bytes_charged(tx, user_id), repos.guest_bytes
    if size and charged + size > limit:
        raise storage_exceeded(repos, charged, f"{size:,}")


def storage_exceeded(repos: Repos, charged: int, size: str) -> Forbidden:
    return Forbidden(
        f"In repos you may not write to, you may store {repos.guest_bytes:,} bytes that are not merged yet. "
        f"You have stored {charged:,}, and this adds {size}."
    )
