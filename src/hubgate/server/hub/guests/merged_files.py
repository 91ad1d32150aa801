"""Large files of guests that a merge, a push, or a new branch or tag brings into the owner's history.

They become the owner's and count for the owner's quota, so there must be room for them before the refs move. Without a
quota, the sweep assigns them later.
"""

import logging
from collections.abc import Sequence

from hubgate.server.errors import Unavailable
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import program
from hubgate.server.hub.guests import store
from hubgate.server.hub.guests.charges import use_files
from hubgate.server.hub.guests.pointers import listed_among, pointer_sha
from hubgate.server.hub.quotas.quotas import limit_of
from hubgate.server.hub.repos.model import Repo, is_pull_request
from hubgate.server.jobs.caller import current_job_caller

log = logging.getLogger("hubgate.git")

_LIST_SECONDS = 60.0


async def use_merged_files(repos: Repos, repo: Repo, changes: Sequence[RefChange]) -> None:
    """Assign to the owner those files that are in the new history of branches and tags, whose objects are in the repo.
    Raises `QuotaExceeded` if the owner has no room for them.
    """
    tips = [change.new_sha for change in changes if change.new_sha is not None and not is_pull_request(change.ref)]
    if not tips or not await limit_of(repos.db, repos, repo.owner_kind, repo.owner_id):
        return
    files = await repos.db.read_long(lambda tx: store.files_of_guests(tx, repo.id))
    if not files:
        return
    by_pointer = {pointer_sha(oid, size): oid for oid, size in files.items()}
    arguments = ("--objects", "--no-object-names", *tips, "--not", "--branches", "--tags")
    try:
        async with repos.walks.acquire(current_job_caller.get().share_key, repo.id):
            found = await listed_among(repos, repo.id, by_pointer.keys(), arguments, _LIST_SECONDS)
    except (Unavailable, program.GitFailed) as error:
        # A large push is not rejected for that. The sweep assigns the files, and later uploads are rejected.
        log.info("the files of guests in repo %s are assigned later: %s", repo.id, error)
        return
    await use_files(repos, repo, None, {by_pointer[sha] for sha in found})
