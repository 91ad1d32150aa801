"""Commits that only a pull request brought: shown with a notice, so that nobody takes them for the owner's (O72).

A commit is marked before it can be read. Whether it is still only in a pull request is looked up when it is asked for
by its id, at most once for each change of the repo's refs, by a git program that is bounded like all others.
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
from hubgate.server.hub.repos.model import REPO_GONE, Repo
from hubgate.server.jobs.caller import caller_of_context
from hubgate.server.storage.database import Tx

log = logging.getLogger("hubgate.git")

SECONDS = 5.0
# Commits that are marked without making others wait, and that a fetch asks for by their ids.
FEW = 100
# In a request of `git fetch` (gitprotocol-pack, gitprotocol-v2).
_WANT = re.compile(rb"want ([0-9a-fA-F]{40})")
_LONGEST_WANT = len("want ") + 39


class Standing(Enum):
    """What leads to a commit."""

    # A branch or tag; also of a commit that never was in a pull request.
    OWN = "own"
    PULL_REQUEST = "pull request"
    # It was in a pull request that was removed or refused.
    NOWHERE = "nowhere"


async def mark(repos: Repos, repo: Repo, shas: Collection[str]) -> None:
    if not shas:
        return

    async def unit(tx: Tx) -> None:
        if not await repo_store.hold(tx, repo.id):
            raise NotFound(REPO_GONE, code="RepoNotFound")
        await store.mark(tx, repo.id, sorted(shas))

    await (repos.db.write if len(shas) <= FEW else repos.db.write_long)(unit)


async def standing_of(repos: Repos, repo: Repo, sha: str) -> Standing:
    found = await store.marked(repos.db, repo.id, sha)
    if found is None:
        return Standing.OWN
    is_reachable, checked = found
    if checked != repo.generation:
        try:
            standing = await _looked_up(repos, repo, sha)
        except (Unavailable, program.GitFailed) as error:
            log.info("what leads to a commit is not known: %s", error)
            return Standing.PULL_REQUEST if is_reachable or checked is None else Standing.NOWHERE
        await _store(repos, repo, sha, standing)
        return standing
    return Standing.PULL_REQUEST if is_reachable else Standing.NOWHERE


async def without_removed(repos: Repos, repo: Repo, asked: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """What a fetch asks for, passed on; NotFound if that is a commit that was in a pull request and is nowhere now. Git
    itself gives out all that it has, by its id.
    """
    begun, asked_before = b"", set[str]()
    async for part in asked:
        # A line that is not whole yet is of no use to git either.
        text = begun + part
        wanted = {sha.decode().lower() for sha in _WANT.findall(text)} - asked_before
        asked_before |= wanted
        for sha in await _to_look_up(repos, repo, wanted):
            if await standing_of(repos, repo, sha) is Standing.NOWHERE:
                raise NotFound(f"not our ref {sha}", code="RevisionNotFound")
        begun = text[-_LONGEST_WANT:]
        yield part


async def _to_look_up(repos: Repos, repo: Repo, wanted: Collection[str]) -> list[str]:
    """Clients mostly want what refs are at."""
    if not wanted:
        return []

    async def read(tx: Tx) -> list[str]:
        found = await store.marked_among(tx, repo.id, wanted)
        return sorted(found - {sha for _, sha in await repo_store.refs(tx, repo.id)}) if found else []

    found = await repos.db.read_long(read)
    if len(found) > FEW:
        raise BadRequest(f"Fetch at most {FEW} commits of pull requests by their ids at once.")
    return found


async def _looked_up(repos: Repos, repo: Repo, sha: str) -> Standing:
    async with repos.walks.taken(caller_of_context.get().share, repo.id):
        await copied_refs.refresh(repos, repo.id)
        if await _is_in(repos, repo, sha, "--branches", "--tags"):
            return Standing.OWN
        return Standing.PULL_REQUEST if await _is_in(repos, repo, sha, "--glob=refs/pr/*") else Standing.NOWHERE


async def _is_in(repos: Repos, repo: Repo, sha: str, *refs: str) -> bool:
    command = ["rev-list", "--max-count=1", sha, "--not", *refs, "--"]
    return not await program.run(command, repos.folders.of(repo.id), seconds=SECONDS, gently=True)


async def _store(repos: Repos, repo: Repo, sha: str, standing: Standing) -> None:
    if standing is Standing.OWN:
        # For good: what a writer once put on a branch is the owner's, whatever becomes of the branch.
        await repos.db.write(lambda tx: store.unmark(tx, repo.id, sha))
    else:
        in_pull_request = standing is Standing.PULL_REQUEST
        await repos.db.write(lambda tx: store.set_mark(tx, repo.id, sha, in_pull_request, repo.generation))
