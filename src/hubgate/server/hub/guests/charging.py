"""Charging guests for what they store, before anything of it is stored (attack O72).

A charge waits for a pull request to take it up. What none took up within two days is given back, and large files among
it are dropped (`sweep`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from hubgate.server.errors import Forbidden, NotFound, Unprocessable
from hubgate.server.hub.context import Repos
from hubgate.server.hub.guests import store
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import REPO_GONE, Repo
from hubgate.server.storage.database import Database, Tx

# Closed pull requests still have their refs, which every clone is told of: so many for each that may be open.
REFS_FOR_EACH = 10
# What a file takes on disk at least: without it, rows for empty files would cost nothing.
SMALLEST_FILE = 4096
# Files that are taken up without making others wait.
FEW = 100


@dataclass
class Charge:
    """What one commit or push of a guest is charged for so far."""

    user_id: str
    in_git: int = 0
    # Large files that only guests sent, by their ids.
    files: set[str] = field(default_factory=set)
    # The push leaves commits behind that the pull request had. They stay on disk, also once what is left is merged.
    rewinds: bool = False

    @property
    def is_long(self) -> bool:
        return len(self.files) > FEW


async def charge_of(repos: Repos, repo: Repo, user_id: str | None) -> Charge | None:
    """None for those who may write to the repo."""
    if user_id is None or await store.is_writer(repos.db, repo.id, user_id):
        return None
    return Charge(user_id)


async def add_git(repos: Repos, repo: Repo, charge: Charge, size: int) -> None:
    """Forbidden if the user holds too much already; then nothing is charged."""
    now = repos.clock()

    async def unit(tx: Tx) -> None:
        await _check_room(tx, repos, charge.user_id, size)
        await _hold_repo(tx, repo)
        await store.charge_git(tx, charge.user_id, repo.id, 0, size, now)

    # A guest may hold so many files that adding them up takes long.
    await repos.db.write_long(unit)
    charge.in_git += size


async def announce(repos: Repos, repo: Repo, user_id: str, sizes: Mapping[str, int]) -> None:
    """Large files that a guest is about to upload."""
    now = repos.clock()

    async def unit(tx: Tx) -> None:
        await store.hold_user(tx, user_id)
        await _hold_repo(tx, repo)
        await _charge_files(tx, repos, user_id, repo.id, sizes, now)

    await repos.db.write_long(unit)


async def use_files(repos: Repos, repo: Repo, charge: Charge | None, oids: Collection[str]) -> None:
    """Large files of the repo that a commit or push names. A guest is charged for those that only guests sent; if a
    writer uses one, it is the owner's.
    """
    if not oids:
        return
    of_guests = await repos.db.read_long(lambda tx: store.guests_among(tx, repo.id, oids))
    if not of_guests:
        return
    now = repos.clock()

    async def unit(tx: Tx) -> None:
        if charge is not None:
            await store.hold_user(tx, charge.user_id)
        # A sweep may be about to drop them.
        await _hold_repo(tx, repo)
        if charge is None:
            await store.make_owners(tx, repo.id, of_guests)
            return
        still = await store.guests_among(tx, repo.id, of_guests)
        await _charge_files(tx, repos, charge.user_id, repo.id, still, now)
        charge.files.update(still)

    await repos.db.write_long(unit)


async def add_kept(tx: Tx, repo: Repo, charge: Charge, oid: str, size: int, now: int) -> bool:
    """A file that came inside a commit, counted by `add_git`, and is stored as a large file: whether it is charged as
    one. If the owner has it too, nobody is charged.
    """
    await store.charge_git(tx, charge.user_id, repo.id, 0, -size, now)
    only_of_guests = bool(await store.guests_among(tx, repo.id, [oid]))
    if only_of_guests:
        await store.charge(tx, charge.user_id, repo.id, 0, {oid: max(size, SMALLEST_FILE)}, now)
    return only_of_guests


async def take_up(tx: Tx, repo_id: str, num: int, charge: Charge, now: int) -> None:
    """A pull request got what was charged. The unit holds the user (`store.hold_user`) since its beginning."""
    files = await store.files_held(tx, charge.user_id, repo_id, charge.files)
    await store.charge(tx, charge.user_id, repo_id, num, files, now)
    await store.forget_waiting(tx, charge.user_id, repo_id, files)
    if charge.rewinds:
        await store.leave_behind(tx, repo_id, num)
    if charge.in_git:
        await store.charge_git(tx, charge.user_id, repo_id, 0, -charge.in_git, now)
        await store.charge_git(tx, charge.user_id, repo_id, num, charge.in_git, now)


async def check_pull_requests(tx: Tx | Database, repos: Repos, repo: Repo, user_id: str) -> None:
    """Whether a guest may have one more open; Forbidden says why not. In the unit that opens it, which holds the repo,
    and before that, so that nothing is stored in vain.
    """
    most = repos.guest_pull_requests
    if most == 0:
        raise Forbidden("Only users who may write to this repo can open pull requests on this hub.")
    if await store.open_pull_requests(tx, repo.id, user_id) >= most:
        raise Forbidden(
            f"You have {most:,} open pull requests in this repo, the most for users who may not write to it. "
            "Close one, or wait until one is merged."
        )


async def check_refs(tx: Tx | Database, repos: Repos, repo: Repo, user_id: str) -> None:
    """Whether a guest may have one more ref, of pull requests that are closed or open."""
    most = repos.guest_pull_requests
    if await store.refs_of_pull_requests(tx, repo.id, user_id) >= most * REFS_FOR_EACH:
        raise Forbidden(
            f"You have {most * REFS_FOR_EACH:,} pull requests in this repo, closed ones included. "
            "Delete the refs of closed ones first."
        )


async def _charge_files(tx: Tx, repos: Repos, user_id: str, repo_id: str, sizes: Mapping[str, int], now: int) -> None:
    sizes = {oid: max(size, SMALLEST_FILE) for oid, size in sizes.items()}
    held = await store.files_held(tx, user_id, repo_id, sizes)
    more = sum(max(size - held.get(oid, 0), 0) for oid, size in sizes.items())
    await _check_room(tx, repos, user_id, more)
    await store.charge(tx, user_id, repo_id, 0, sizes, now)


async def _hold_repo(tx: Tx, repo: Repo) -> None:
    if not await repo_store.hold(tx, repo.id):
        raise NotFound(REPO_GONE, code="RepoNotFound")


async def _check_room(tx: Tx, repos: Repos, user_id: str, size: int) -> None:
    if not await store.hold_user(tx, user_id):
        raise Unprocessable("This account was deleted.")
    held, most = await store.bytes_held(tx, user_id), repos.guest_bytes
    if size and held + size > most:
        raise Forbidden(
            f"You may hold {most:,} bytes in repos that you may not write to, until pull requests are merged. "
            f"You hold {held:,}, and this has {size:,}."
        )
