"""Ends charges of guests, and deletes unneeded large files that only guests uploaded.

A charge for git storage ends when its pull request is merged, by any method: its commit is on a branch or tag.

A large file is checked once its pull request has been merged, replaced or removed, or if no pull request used it in
time. If a branch or tag contains a pointer to the file, the file becomes the owner's; if a pull request does, the file
stays charged; otherwise the file's link is deleted and its charge ends.
"""

import logging
from collections.abc import Collection
from dataclasses import dataclass

from hubgate.server.clock import DAY
from hubgate.server.errors import HubError
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import program
from hubgate.server.hub.guests import store
from hubgate.server.hub.guests.pointers import listed_among, pointer_sha
from hubgate.server.hub.quotas.quotas import lock_limited_owner
from hubgate.server.hub.quotas.store import forget_used
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import PULL_REQUESTS
from hubgate.server.storage.database import Tx

log = logging.getLogger("hubgate.worker")

# How long an upload may wait for a pull request that uses it.
UNUSED_UPLOAD_AGE = 2 * DAY
# Files of a repo that are checked per step.
FILES_PER_STEP = 10_000
WALK_SECONDS = 10 * 60.0

_BRANCHES_AND_TAGS = ("--branches", "--tags")
_PULL_REQUESTS = f"--glob={PULL_REQUESTS}*"


@dataclass
class GuestSweep:
    repos: Repos
    # The last repo processed in this round.
    _after: str = ""

    async def step(self) -> bool:
        """Process some repos of a round; return whether the round has more. A failed repo waits for the next round."""
        db, limit, before = self.repos.db, self.repos.limits.swept_repos, self.repos.clock() - UNUSED_UPLOAD_AGE
        found = await db.read_long(lambda tx: store.repos_to_sweep(tx, self._after, before, limit))
        for repo_id, generation in found:
            try:
                await self._end_merged_charges(repo_id, generation)
                await self._check_files(repo_id, generation, before)
            except (HubError, program.GitFailed) as error:
                log.warning("the guest data of repo %s will be checked later: %s", repo_id, error)
        await db.write_long(lambda tx: store.charge_waiting_xorbs(tx, before, self.repos.clock()))
        await db.write_long(lambda tx: store.expire_file_charges(tx, before))
        self._after = found[-1][0] if len(found) == limit else ""
        return self._after != ""

    async def _end_merged_charges(self, repo_id: str, generation: int) -> None:
        tips = await self.repos.db.read_long(lambda tx: store.charged_refs(tx, repo_id))
        of_guests = (_PULL_REQUESTS, "--not", *_BRANCHES_AND_TAGS)
        unmerged = await self._listed_among(repo_id, set(tips.values()), *of_guests) if tips else set()
        merged = [num for num, sha in tips.items() if sha not in unmerged]

        async def unit(tx: Tx) -> None:
            if await repo_store.lock(tx, repo_id) != generation:
                return
            for num in merged:
                await store.end_charges(tx, repo_id, num)
            await store.set_checked(tx, repo_id, generation)

        await self.repos.db.write_long(unit)

    async def _check_files(self, repo_id: str, generation: int, before: int) -> None:
        files = await self.repos.db.read_long(lambda tx: store.files_due(tx, repo_id, before, FILES_PER_STEP))
        if not files:
            return
        by_pointer = {pointer_sha(oid, size): oid for oid, size in files.items()}
        own = await self._listed_among(
            repo_id, by_pointer.keys(), "--objects", "--no-object-names", *_BRANCHES_AND_TAGS
        )
        others = by_pointer.keys() - own
        needed = (
            await self._listed_among(repo_id, others, "--objects", "--no-object-names", _PULL_REQUESTS)
            if others
            else set()
        )

        async def unit(tx: Tx) -> None:
            # Locked before the repo, as in all transactions.
            owner = await lock_limited_owner(tx, self.repos, repo_id) if own else None
            # The generation changes whenever a ref moves, so the findings are still valid if it is the same.
            if await repo_store.lock(tx, repo_id) != generation:
                return
            await store.assign_to_owner(tx, repo_id, {by_pointer[sha] for sha in own})
            if owner is not None:
                # Not checked, since the files are on a branch already (`merged_files.py`).
                await forget_used(tx, owner.id)
            await store.set_needed(tx, repo_id, {by_pointer[sha] for sha in needed}, generation)
            await store.drop_due(tx, repo_id, {by_pointer[sha] for sha in others - needed}, before, self.repos.clock())

        await self.repos.db.write_long(unit)

    async def _listed_among(self, repo_id: str, shas: Collection[str], *arguments: str) -> set[str]:
        return await listed_among(self.repos, repo_id, shas, arguments, WALK_SECONDS)
