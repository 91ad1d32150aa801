"""Marks on commits that are only in a pull request. Such commits are shown with a notice, so that no reader mistakes
them for the owner's (attack O72).

A commit is marked before it can be read. When a marked commit is requested by id, git checks whether it is still only
in a pull request, at most once per change of the repo's refs and with a time limit.
"""

import logging
import re
from collections.abc import AsyncIterator, Collection
from enum import Enum

from hubgate.server.errors import BadRequest, NotFound, Unavailable
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import program
from hubgate.server.hub.guests import store
from hubgate.server.hub.repos import copied_refs
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import PULL_REQUESTS, Repo
from hubgate.server.hub.repos.transactions import lock_repo
from hubgate.server.jobs.caller import current_job_caller
from hubgate.server.storage.database import Tx

log = logging.getLogger("hubgate.git")

CHECK_SECONDS = 5.0
# The maximum number of commits marked in a short transaction, and of marked commits that a fetch requests by id.
MAX_MARKED_AT_ONCE = 100
# A line in a request of `git fetch` (gitprotocol-pack, gitprotocol-v2).
_WANT = re.compile(rb"want ([0-9a-fA-F]{40})")
_MAX_PARTIAL_WANT = len("want ") + 39


class Reachability(Enum):
    """The kind of ref from which a commit is reachable."""

    # Also for commits that were never in a pull request.
    BRANCH_OR_TAG = "branch or tag"
    PULL_REQUEST = "pull request"
    # No ref: the commit was in a pull request that was removed or rejected.
    UNREACHABLE = "unreachable"


async def mark(repos: Repos, repo: Repo, shas: Collection[str]) -> None:
    if not shas:
        return

    async def unit(tx: Tx) -> None:
        await lock_repo(tx, repo.id)
        await store.mark(tx, repo.id, sorted(shas))

    await (repos.db.write if len(shas) <= MAX_MARKED_AT_ONCE else repos.db.write_long)(unit)


async def reachability_of(repos: Repos, repo: Repo, sha: str) -> Reachability:
    found = await store.find_mark(repos.db, repo.id, sha)
    if found is None:
        return Reachability.BRANCH_OR_TAG
    is_reachable, checked = found
    if checked != repo.generation:
        try:
            reachability = await _look_up(repos, repo, sha)
        except (Unavailable, program.GitFailed) as error:
            log.info("the reachability of a commit is unknown: %s", error)
            return Reachability.PULL_REQUEST if is_reachable or checked is None else Reachability.UNREACHABLE
        await _store(repos, repo, sha, reachability)
        return reachability
    return Reachability.PULL_REQUEST if is_reachable else Reachability.UNREACHABLE


async def reject_removed_commits(repos: Repos, repo: Repo, request: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Pass on the request of a fetch; raise NotFound if it wants a commit of a removed pull request. Git itself serves
    any object by its id.
    """
    tail, seen = b"", set[str]()
    async for part in request:
        # A line split between parts is complete, and checked, before git receives its end.
        text = tail + part
        shas = {sha.decode().lower() for sha in _WANT.findall(text)} - seen
        seen |= shas
        for sha in await _marked_and_not_refs(repos, repo, shas):
            if await reachability_of(repos, repo, sha) is Reachability.UNREACHABLE:
                raise NotFound(f"not our ref {sha}", code="RevisionNotFound")
        tail = text[-_MAX_PARTIAL_WANT:]
        yield part


async def _marked_and_not_refs(repos: Repos, repo: Repo, shas: Collection[str]) -> list[str]:
    """Those of `shas` that are marked and not the head of a ref. Most clients want only heads."""
    if not shas:
        return []

    async def read(tx: Tx) -> list[str]:
        found = await store.marked_among(tx, repo.id, shas)
        return sorted(found - {sha for _, sha in await repo_store.refs(tx, repo.id)}) if found else []

    found = await repos.db.read_long(read)
    if len(found) > MAX_MARKED_AT_ONCE:
        raise BadRequest(f"Fetch at most {MAX_MARKED_AT_ONCE} commits of pull requests by their ids at once.")
    return found


async def _look_up(repos: Repos, repo: Repo, sha: str) -> Reachability:
    async with repos.walks.acquire(current_job_caller.get().share_key, repo.id):
        await copied_refs.refresh(repos, repo.id)
        if await _is_reachable_from(repos, repo, sha, "--branches", "--tags"):
            return Reachability.BRANCH_OR_TAG
        return (
            Reachability.PULL_REQUEST
            if await _is_reachable_from(repos, repo, sha, f"--glob={PULL_REQUESTS}*")
            else Reachability.UNREACHABLE
        )


async def _is_reachable_from(repos: Repos, repo: Repo, sha: str, *refs: str) -> bool:
    command = ["rev-list", "--max-count=1", sha, "--not", *refs, "--"]
    return not await program.run(command, repos.folders.of(repo.id), seconds=CHECK_SECONDS, low_priority=True)


async def _store(repos: Repos, repo: Repo, sha: str, reachability: Reachability) -> None:
    if reachability is Reachability.BRANCH_OR_TAG:
        # Permanent: a commit that a writer put on a branch is the owner's, even if the branch is deleted.
        await repos.db.write(lambda tx: store.unmark(tx, repo.id, sha))
    else:
        in_pull_request = reachability is Reachability.PULL_REQUEST
        await repos.db.write(lambda tx: store.set_mark(tx, repo.id, sha, in_pull_request, repo.generation))
