"""Pages of a repo's history. A cursor contains the ids of the next commits, so the cost of a page does not depend on
earlier pages.

A cursor is not trusted. It may contain any commits of the repo, which anyone who can see the repo can also read by id.
A forged cursor must not make a page more expensive, or show commits of a pull request as commits of a branch (attack
O72).
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from hubgate.server.errors import BadRequest
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import history
from hubgate.server.hub.git.history import NotACommit
from hubgate.server.hub.guests.marked_commits import Reachability, reachability_of
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.lookup import Revision
from hubgate.server.hub.repos.model import Repo, is_pull_request
from hubgate.server.jobs.caller import current_job_caller
from hubgate.server.paging import decode_cursor, encode_cursor

# The last page that can be requested by number. The cost of such a page includes all pages before it.
LAST_PAGE = 100
# Ids in each of the two lists of a cursor: a cursor stays below 3 KB, since some proxies reject headers over 4 KB. With
# more parallel lines of history, the cursor has the start and the number of commits to skip instead.
MAX_IDS = 24
MAX_SKIPPED = 100_000
# Beyond this number, commits are skipped by the git program, which can be killed at any time and retains no memory.
MAX_SKIPPED_IN_PROCESS = 2_000
SKIP_SECONDS = 20.0
# If a commit is older than its parents, later pages may show the parents again, endlessly in a crafted history. So all
# pages together show at most twice as many commits as exist.
_MAX_REPEATS = 2
_UNLIMITED = 2**40

_IDS = re.compile(rf"(?:[0-9a-f]{{40}}){{0,{MAX_IDS}}}\Z")
_BAD_CURSOR = "This cursor is invalid. Start again from the first page."


class HistoryPosition(Struct, frozen=True):
    """The start of a page: `skip` commits after `starts`, excluding `visited`. This page and all later pages show at
    most `remaining` commits.
    """

    starts: Sequence[str]
    visited: Sequence[str]
    skip: int
    remaining: int

    def cursor(self) -> str:
        return encode_cursor((self.remaining, "".join(self.starts), "".join(self.visited), self.skip))


class HistoryPage(Struct, frozen=True):
    commits: list[history.Commit]
    next_cursor: str | None


def from_number(sha: str, number: int, limit: int, total: int | None) -> HistoryPosition:
    """The start of a page by its number, from 0."""
    if number > LAST_PAGE:
        raise BadRequest(f"A page number must be at most {LAST_PAGE}. Follow the cursor in the Link header for more.")
    remaining = _UNLIMITED if total is None else _MAX_REPEATS * total
    return HistoryPosition([sha], [], number * limit, remaining)


def from_cursor(text: str) -> HistoryPosition:
    remaining, starts, visited, skip = decode_cursor(text, (int, str, str, int))
    position = HistoryPosition(_ids(str(starts)), _ids(str(visited)), int(skip), int(remaining))
    if not position.starts or not 0 <= position.skip <= MAX_SKIPPED or not 0 < position.remaining <= _UNLIMITED:
        raise BadRequest(_BAD_CURSOR)
    return position


def _ids(text: str) -> list[str]:
    if not _IDS.match(text):
        raise BadRequest(_BAD_CURSOR)
    return [text[at : at + 40] for at in range(0, len(text), 40)]


async def page_from(repos: Repos, repo: Repo, revision: Revision, position: HistoryPosition, limit: int) -> HistoryPage:
    await _check_starts(repos, repo, revision, position)
    folder, starts, skip = repos.folders.of(repo.id), position.starts, position.skip
    try:
        if skip > MAX_SKIPPED_IN_PROCESS:
            async with repos.walks.acquire(current_job_caller.get().share_key, repo.id):
                starts, skip = await history.commits_beyond(folder, starts, skip, SKIP_SECONDS), 0
        found = await history.page(folder, starts, skip, limit, position.visited)
    except NotACommit:
        raise BadRequest(_BAD_CURSOR) from None
    remaining = position.remaining - len(found.commits)
    if not found.pending or remaining <= 0:
        return HistoryPage(found.commits, None)
    following = HistoryPosition(found.pending, found.visited, 0, remaining)
    if max(len(found.pending), len(found.visited)) > MAX_IDS:
        following = HistoryPosition(position.starts, position.visited, position.skip + len(found.commits), remaining)
    return HistoryPage(found.commits, following.cursor() if following.skip <= MAX_SKIPPED else None)


async def _check_starts(repos: Repos, repo: Repo, revision: Revision, position: HistoryPosition) -> None:
    of_pull_request = revision.in_pull_request or is_pull_request(revision.ref or "")
    for sha in position.starts:
        if sha == revision.sha:
            continue
        reachability = await reachability_of(repos, repo, sha)
        if reachability is Reachability.UNREACHABLE or (
            reachability is Reachability.PULL_REQUEST and not of_pull_request
        ):
            raise BadRequest(_BAD_CURSOR)


async def total_commits(repos: Repos, repo: Repo, revision: Revision) -> int | None:
    """The number of commits reachable from a revision, stored for a ref. None if it is unknown and slow to count."""
    if revision.ref is not None:
        stored = await store.ref_with_commit_count(repos.db, repo.id, revision.ref)
        if stored is not None and stored[1] is not None and _is_at(stored[0], revision):
            return stored[1]
    return await history.count_commits(repos.folders.of(repo.id), revision.sha)


def _is_at(sha: str, revision: Revision) -> bool:
    """Whether the ref is at the revision. An annotated tag points to a tag object, which points to the commit."""
    return sha == revision.sha or (revision.ref or "").startswith("refs/tags/")
