"""The commits that a push or commit adds to a pull request, for its conversation."""

import logging
from collections.abc import Sequence

import pygit2

from hubgate.server.errors import NotFound, Unavailable
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions.entries.model import Commit
from hubgate.server.hub.git import objects, program
from hubgate.server.hub.git.history import commit_of_object
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import MAIN, Repo
from hubgate.server.jobs.caller import current_job_caller

log = logging.getLogger("hubgate.git")

# Only the newest commits of a push are listed, at most this many.
MAX_LISTED = 100
LIST_SECONDS = 5.0
LONGEST_SUBJECT = 200


async def commits_added(repos: Repos, repo: Repo, change: RefChange) -> list[Commit]:
    """The newest commits that a change adds to a pull request and that are not on main, oldest first. Empty if they
    cannot be listed in time: a push is not rejected for that.
    """
    if change.new_sha is None:
        return []
    folder, head = repos.folders.of(repo.id), await store.ref(repos.db, repo.id, MAIN)
    excluded = [sha for sha in (change.old_sha, head) if sha is not None]
    command = ["rev-list", f"--max-count={MAX_LISTED}", change.new_sha, "--not", *excluded, "--"]

    def read_commits(repository: pygit2.Repository, shas: Sequence[str]) -> list[Commit]:
        return [_commit(repository[sha].peel(pygit2.Commit)) for sha in shas]

    try:
        async with repos.walks.acquire(current_job_caller.get().share_key, repo.id):
            output = await program.run(command, folder, seconds=LIST_SECONDS, low_priority=True)
        shas = output.decode().split()[::-1]
        return await objects.read_repository(folder, lambda repository: read_commits(repository, shas))
    except (Unavailable, NotFound, program.GitFailed) as error:
        log.info("the commits of a pull request are not listed: %s", error)
        return []


def _commit(commit: pygit2.Commit) -> Commit:
    found = commit_of_object(commit)
    # A pushed subject may contain anything, but PostgreSQL cannot store NUL.
    return Commit(found.sha, found.title[:LONGEST_SUBJECT].replace("\0", ""))
