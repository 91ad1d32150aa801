"""Ends charges of guests, and drops large files that only guests sent once nothing needs them.

A charge ends when its pull request is merged, by whatever means: its commit is on a branch. A file is needed as long as
somebody is charged for it, or a ref leads to a pointer to it; if a branch or tag does, it is the owner's.
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import aclosing
from dataclasses import dataclass

from hubgate.server.clock import DAY
from hubgate.server.errors import HubError
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import program
from hubgate.server.hub.git.objects import pointer_text
from hubgate.server.hub.guests import store
from hubgate.server.hub.repos import copied_refs
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.storage.database import Tx

log = logging.getLogger("hubgate.worker")

_Work = Callable[[str, int], Awaitable[bool]]

# How long an upload waits for a pull request to take it up.
WAITING_LASTS = 2 * DAY
# Repos, and files of each, that are looked at in one step.
SLICE = 50
MOST_FILES = 10_000
LONGEST_WALK = 10 * 60.0

_OWN = ("--branches", "--tags")
_PULL_REQUESTS = "--glob=refs/pr/*"


def pointer_sha(oid: str, size: int) -> str:
    """The id of the blob that stands for a large file in git. Guests can write no other form of it."""
    text = pointer_text(oid, size)
    return hashlib.sha1(f"blob {len(text)}\0".encode() + text, usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class Sweep:
    repos: Repos

    async def step(self) -> bool:
        """Whether there is more to do at once."""
        db, before = self.repos.db, self.repos.clock() - WAITING_LASTS
        await db.write_long(lambda tx: store.expire_waiting(tx, before))
        charged = await db.read_long(lambda tx: store.repos_with_charges(tx, SLICE))
        done = [await self._tried(self._end_merged, *one) for one in charged]
        uncharged = await db.read_long(lambda tx: store.repos_with_uncharged_files(tx, SLICE))
        done += [await self._tried(self._drop_files, *one) for one in uncharged]
        return SLICE in (len(charged), len(uncharged)) and any(done)

    async def _tried(self, work: _Work, repo_id: str, generation: int) -> bool:
        try:
            return await work(repo_id, generation)
        except (HubError, program.GitFailed) as error:
            log.warning("the guests of repo %s are looked at later: %s", repo_id, error)
            return False

    async def _end_merged(self, repo_id: str, generation: int) -> bool:
        tips = await self.repos.db.read_long(lambda tx: store.charged_refs(tx, repo_id))
        unmerged = await self._met(repo_id, set(tips.values()), _PULL_REQUESTS, "--not", *_OWN)
        merged = [num for num, sha in tips.items() if sha not in unmerged]

        async def unit(tx: Tx) -> bool:
            if await repo_store.hold(tx, repo_id) != generation:
                return False
            for num in merged:
                await store.end_charges(tx, repo_id, num)
            await store.set_checked(tx, repo_id, generation)
            return True

        return await self.repos.db.write_long(unit)

    async def _drop_files(self, repo_id: str, generation: int) -> bool:
        files = await self.repos.db.read_long(lambda tx: store.uncharged_files(tx, repo_id, MOST_FILES))
        by_pointer = {pointer_sha(oid, size): oid for oid, size in files.items()}
        own = await self._met(repo_id, by_pointer.keys(), "--objects", "--no-object-names", *_OWN)
        others = by_pointer.keys() - own
        needed = await self._met(repo_id, others, "--objects", "--no-object-names", _PULL_REQUESTS) if others else set()

        async def unit(tx: Tx) -> bool:
            # Every ref that moves changes the generation, so what was found is still so.
            if await repo_store.hold(tx, repo_id) != generation:
                return False
            await store.make_owners(tx, repo_id, {by_pointer[sha] for sha in own})
            await store.set_needed(tx, repo_id, {by_pointer[sha] for sha in needed}, generation)
            await store.drop_uncharged(tx, repo_id, {by_pointer[sha] for sha in others - needed})
            return True

        return await self.repos.db.write_long(unit)

    async def _met(self, repo_id: str, wanted: Collection[str], *arguments: str) -> set[str]:
        """Those of `wanted` that `git rev-list` lists."""
        folder = await copied_refs.refresh(self.repos, repo_id)
        met, named = set[str](), {sha.encode() for sha in wanted}
        lines = program.lines(["rev-list", *arguments], folder, b"", LONGEST_WALK)
        async with aclosing(lines):
            async for part in lines:
                met.update(sha.decode() for sha in named.intersection(part))
                if len(met) == len(named):
                    break
        return met
