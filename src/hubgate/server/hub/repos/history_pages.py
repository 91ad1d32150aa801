"""The history of a repo page by page. A cursor says which commits come next, so each page costs its own commits only.

A cursor is not trusted. It may name any commits of the repo, which anyone who may see the repo can read by their ids as
well; what it may not do is make one page cost more than another.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hubgate.server.errors import BadRequest
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import history
from hubgate.server.hub.git.walking import NotACommit
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.finding import Revision
from hubgate.server.hub.repos.model import Repo
from hubgate.server.jobs.caller import caller_of_context
from hubgate.server.paging import decode_cursor, encode_cursor

# Pages that can be asked for by number. Each costs all pages before it.
LAST_PAGE = 100
# Commits a cursor names at most; where more lines run side by side it says instead how many to skip from where it
# started.
MOST_STARTS = 100
MOST_SKIPPED = 100_000
# From here on a program skips them, which can be ended at any moment and leaves no memory behind.
SKIPPED_HERE = 5_000
SKIP_SECONDS = 20.0
# Cursors know no way back. Where dates run backwards a commit may be met again on a later page, in histories made for
# it without end: so a walk shows no more than twice as many commits as there are.
_ENOUGH = 2
_WITHOUT_END = 2**40

_STARTS = re.compile(r"(?:[0-9a-f]{40})+\Z")
_BAD_CURSOR = "This cursor was not made here. Start again from the first page."


@dataclass(frozen=True)
class Place:
    """Where a page begins: `skip` commits after `starts`. `left` is how many are still shown at most."""

    starts: Sequence[str]
    skip: int
    left: int


@dataclass(frozen=True)
class HistoryPage:
    commits: list[history.Commit]
    next_cursor: str | None


def numbered(sha: str, number: int, limit: int, total: int | None) -> Place:
    """A page by its number, from 0."""
    if number > LAST_PAGE:
        raise BadRequest(f"A page number is at most {LAST_PAGE}. Follow the cursor in the Link header for more.")
    left = _WITHOUT_END if total is None else _ENOUGH * total
    return Place([sha], number * limit, left)


def from_cursor(text: str) -> Place:
    left, ids, skip = decode_cursor(text, (int, str, int))
    if not isinstance(left, int) or not isinstance(ids, str) or not isinstance(skip, int):
        raise BadRequest(_BAD_CURSOR)
    if not _STARTS.match(ids) or len(ids) > 40 * MOST_STARTS or not 0 <= skip <= MOST_SKIPPED or left < 0:
        raise BadRequest(_BAD_CURSOR)
    return Place([ids[at : at + 40] for at in range(0, len(ids), 40)], skip, left)


async def page_from(repos: Repos, repo: Repo, place: Place, limit: int) -> HistoryPage:
    folder, starts, skip = repos.folders.of(repo.id), place.starts, place.skip
    try:
        if skip > SKIPPED_HERE:
            async with repos.walks.taken(caller_of_context.get().share, repo.id):
                starts, skip = await history.beyond(folder, starts, skip, SKIP_SECONDS), 0
        found = await history.page(folder, starts, skip, limit)
    except NotACommit:
        raise BadRequest(_BAD_CURSOR) from None
    left = place.left - len(found.commits)
    if not found.ahead or left <= 0:
        return HistoryPage(found.commits, None)
    if len(found.ahead) <= MOST_STARTS:
        return HistoryPage(found.commits, encode_cursor((left, "".join(found.ahead), 0)))
    passed = place.skip + len(found.commits)
    wide = encode_cursor((left, "".join(place.starts), passed)) if passed <= MOST_SKIPPED else None
    return HistoryPage(found.commits, wide)


async def total(repos: Repos, repo: Repo, revision: Revision) -> int | None:
    """How many commits lead to a revision: stored for a ref. None where that is not known and would take long."""
    if revision.ref is not None:
        stored = await store.commits_of(repos.db, repo.id, revision.ref)
        if stored is not None and stored[1] is not None and _is_at(stored[0], revision):
            return stored[1]
    return await history.count(repos.folders.of(repo.id), revision.sha)


def _is_at(sha: str, revision: Revision) -> bool:
    """A tag may point to an object of its own, which points to the commit."""
    return sha == revision.sha or (revision.ref or "").startswith("refs/tags/")
