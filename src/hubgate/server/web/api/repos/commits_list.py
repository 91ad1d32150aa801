"""`GET /commits/{rev}`: the history, newest first."""

from collections.abc import Collection, Mapping
from html import escape
from typing import Any

from hubgate.server.access.actions import Action
from hubgate.server.clock import SECOND, iso
from hubgate.server.edge.routes import Query, Route
from hubgate.server.errors import BadRequest
from hubgate.server.http.forms import Fields
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import history
from hubgate.server.hub.repos import history_pages, lookup, store
from hubgate.server.hub.repos.history_pages import HistoryPosition
from hubgate.server.hub.repos.model import Repo
from hubgate.server.paging import next_link
from hubgate.server.storage.database import Tx
from hubgate.server.web.api.repos import queries
from hubgate.server.web.api.repos.contents import revision_and_path
from hubgate.server.web.avatars import avatar_url
from hubgate.server.web.repo_routes import api_routes, at_repo, headers_of

DEFAULT, MOST = 50, 1000
MOST_AVATARS = 100


def routes(repos: Repos) -> list[Route]:
    async def commits(request: HubRequest, repo: Repo) -> JsonResponse:
        fields = request.query_fields()
        rest = request.param("rev")
        rev, path = await revision_and_path(repos, repo, request, rest)
        # The history of a single path is not supported: any rest after the revision makes the revision unknown.
        revision = await lookup.revision(repos, repo, rest if path else rev)
        limit = min(max(_number(queries.last_value(fields, "limit"), DEFAULT), 1), MOST)
        total = await history_pages.total(repos, repo, revision)
        position = _position(fields, revision.sha, limit, total)
        page = await history_pages.page_from(repos, repo, revision, position, limit)
        formatted = "formatted" in queries.all_values(fields, "expand")
        avatars = await _avatars(repos, {commit.author for commit in page.commits})
        items = [_described(commit, avatars, formatted=formatted) for commit in page.commits]
        response = JsonResponse(items, headers=headers_of(revision))
        if total is not None:
            response.headers["x-total-count"] = str(total)
        if page.next_cursor is not None:
            parameters = [(name, value) for name, value in fields.pairs if name != "p"]
            response.headers["link"] = next_link(
                repos.base_url, request.scope["raw_path"], parameters, page.next_cursor
            )
        return response

    limit = {"type": "integer", "minimum": 0, "maximum": 999_999_999}
    number = {"type": "integer", "minimum": 0, "maximum": history_pages.LAST_PAGE}
    query = (
        Query("limit", f"Commits per page: {DEFAULT} by default, at most {MOST:,}.", limit),
        Query("cursor", "From the Link header of the previous page."),
        Query("p", "The page number, from 0. Later pages are slow: follow the Link header instead.", number),
        Query("expand", "formatted: also return HTML; may be repeated."),
    )
    answers = {200: ("The newest first.", list[dict[str, Any]])}
    see = Action.REPO_SEE
    return api_routes(
        "GET", "/commits/{rev:path}", at_repo(repos, see, commits), "The history of a repo", answers, query=query
    )


def _position(fields: Fields, sha: str, limit: int, total: int | None) -> HistoryPosition:
    cursor, number = queries.last_value(fields, "cursor"), queries.last_value(fields, "p")
    if cursor and number:
        raise BadRequest("Send a cursor or a page number, not both.")
    if cursor:
        return history_pages.from_cursor(cursor)
    return history_pages.from_number(sha, _number(number, 0), limit, total)


def _number(text: str, default: int) -> int:
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise BadRequest("limit and p must be whole numbers.")
    return int(text)


async def _avatars(repos: Repos, authors: Collection[str]) -> dict[str, str]:
    """Return the avatars of authors who are users. A pushed commit may name anyone, so an avatar proves no more than
    the name.
    """

    async def unit(tx: Tx) -> dict[str, str]:
        found = {name: await store.owner_named(tx, name) for name in sorted(authors)[:MOST_AVATARS]}
        return {name: avatar_url(owner.id) for name, owner in found.items() if owner is not None}

    return await repos.db.read_long(unit)


def _described(commit: history.Commit, avatars: Mapping[str, str], *, formatted: bool) -> dict[str, Any]:
    author = {"user": commit.author}
    if commit.author in avatars:
        author["avatar"] = avatars[commit.author]
    fields: dict[str, Any] = {
        "id": commit.sha,
        "title": commit.title,
        "message": commit.message,
        "date": iso(commit.time * SECOND),
        "authors": [author],
    }
    if formatted:
        fields["formatted"] = {"title": escape(commit.title), "message": escape(commit.message)}
    return fields
