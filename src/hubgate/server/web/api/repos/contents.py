"""Files, folders and history of a repo at a revision: `/tree`, `/paths-info`, `/commits`."""

from collections.abc import Collection, Mapping
from html import escape
from typing import Any

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.policy import decide
from hubgate.server.clock import SECOND, iso
from hubgate.server.edge.routes import MIB, Query, Route
from hubgate.server.errors import BadRequest, NotFound
from hubgate.server.http.forms import Fields, parse_fields
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import FORM_TYPE, HubRequest
from hubgate.server.hub.cas import files_store
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import history, trees
from hubgate.server.hub.git.objects import EntryType, TreeEntry
from hubgate.server.hub.repos import history_pages, lookup, store
from hubgate.server.hub.repos.history_pages import HistoryPosition
from hubgate.server.hub.repos.model import Repo
from hubgate.server.jobs.caller import mark_read_only
from hubgate.server.paging import Page, PageRequest, encode_cursor, next_link, parse_page
from hubgate.server.storage.database import Tx
from hubgate.server.web.api.listing import PAGING, page_response
from hubgate.server.web.api.repos import queries
from hubgate.server.web.avatars import avatar_url
from hubgate.server.web.repo_routes import api_routes, repo_endpoint, revision_headers, revision_path_of

MAX_ENTRIES = 1000
# With `expand` each entry costs a walk through the history.
MAX_EXPANDED = 50
MAX_PATHS = 2000
DEFAULT_COMMITS, MAX_COMMITS = 50, 1000
MAX_AVATARS = 100

_TOO_MANY = f"Request at most {MAX_PATHS:,} paths at once."


class PathsRequest(msgspec.Struct):
    paths: str | list[str]
    expand: bool = False


def routes(repos: Repos) -> list[Route]:
    return [*_file_routes(repos), *_history_routes(repos)]


def _file_routes(repos: Repos) -> list[Route]:
    async def tree(request: HubRequest, repo: Repo) -> JsonResponse:
        fields = request.query_fields()
        expand = queries.flag(fields, "expand")
        at = revision_path_of(request)
        path = at.path.strip("/")
        revision = await lookup.revision_of(repos, repo, at)
        page_request = _page_request(fields, MAX_EXPANDED if expand else MAX_ENTRIES)
        after = str(page_request.after[0]) if page_request.after else ""
        folder = repos.folders.of(repo.id)
        entries = await trees.list_entries(
            folder,
            revision.sha,
            path,
            recursive=queries.flag(fields, "recursive"),
            after=after,
            limit=page_request.fetch_limit,
        )
        if entries is None:
            raise NotFound(f"{path} does not exist on {at.rev!r}", code="EntryNotFound")
        shown = entries[: page_request.limit]
        cursor = encode_cursor((trees.position_of(shown[-1]),)) if len(entries) > page_request.limit else None
        items = await describe_entries(request, repo, revision.sha, shown, expand)
        response = page_response(request, repos.base_url, Page(items, cursor), lambda entry: entry)
        response.headers.update(revision_headers(revision))
        return response

    async def paths_info(request: HubRequest, repo: Repo) -> JsonResponse:
        revision = await lookup.revision(repos, repo, request.param("rev"))
        body = await _read_paths(request)
        mark_read_only()
        paths = [body.paths] if isinstance(body.paths, str) else body.paths
        if len(paths) > MAX_PATHS:
            raise BadRequest(_TOO_MANY)
        unique_paths = list(dict.fromkeys(path.strip("/") for path in paths))
        found = await trees.entries_at(repos.folders.of(repo.id), revision.sha, [path for path in unique_paths if path])
        items = await describe_entries(request, repo, revision.sha, found, body.expand)
        return JsonResponse(items, headers=revision_headers(revision))

    async def describe_entries(
        request: HubRequest, repo: Repo, sha: str, entries: list[TreeEntry], expand: bool
    ) -> list[dict[str, Any]]:
        # Another host might serve a large file to anyone who knows its hash, so the hash is hidden like the content.
        hide = not decide(caller_of(request).identity, Action.REPO_READ_CONTENT, repo.as_resource()).allowed
        items = [_entry(entry, hide_hash=hide) for entry in entries]
        if not hide:
            await add_xet_hashes(repo, items)
        if expand:
            paths = [entry.path for entry in entries]
            changes = await history.last_changes(repos.folders.of(repo.id), sha, paths)
            for entry in items:
                change = changes[entry["path"]]
                moment = iso(change.time * SECOND)
                entry["lastCommit"] = {"id": change.sha, "title": change.title, "date": moment}
        return items

    async def add_xet_hashes(repo: Repo, items: list[dict[str, Any]]) -> None:
        """Add the hash with which clients read a file as chunks, without asking for its headers first."""
        oids = {item["lfs"]["oid"] for item in items if "lfs" in item}
        found = await repos.db.read_long(lambda tx: files_store.hashes_of(tx, repo.id, oids)) if oids else {}
        for item in items:
            if "lfs" in item and item["lfs"]["oid"] in found:
                item["xetHash"] = found[item["lfs"]["oid"]]

    see, answers = Action.REPO_SEE, {200: ("Files and folders.", list[dict[str, Any]])}
    query = (
        *PAGING,
        Query("recursive", "Also list the contents of subfolders.", {"type": "boolean"}),
        Query("expand", "Also return the last commit of each entry.", {"type": "boolean"}),
    )
    return [
        *api_routes(
            "GET",
            "/tree/{rest:path}",
            repo_endpoint(repos, see, tree),
            "Files and folders of a repo",
            answers,
            query=query,
        ),
        *api_routes(
            "POST",
            "/paths-info/{rev:path}",
            repo_endpoint(repos, see, paths_info),
            "Files and folders of a repo at given paths",
            answers,
            body=PathsRequest,
            body_cap=2 * MIB,
        ),
    ]


def _page_request(fields: Fields, limit: int) -> PageRequest:
    page_request = parse_page(queries.paging(fields), (str,), limit)
    return PageRequest(min(page_request.limit, limit), page_request.after)


async def _read_paths(request: HubRequest) -> PathsRequest:
    """Read the requested paths. One client sends a form, another JSON."""
    if request.content_type == FORM_TYPE:
        fields = parse_fields(await request.body(), MAX_PATHS + 10)
        return PathsRequest(queries.all_values(fields, "paths"), queries.flag(fields, "expand"))
    return await request.read_json(PathsRequest)


def _entry(entry: TreeEntry, *, hide_hash: bool) -> dict[str, Any]:
    if entry.type is EntryType.DIRECTORY:
        return {"type": "directory", "oid": entry.sha, "size": 0, "path": entry.path}
    fields: dict[str, Any] = {"type": "file", "oid": entry.sha, "size": entry.size, "path": entry.path}
    if entry.pointer and not hide_hash:
        pointer = entry.pointer
        fields["lfs"] = {"oid": pointer.oid, "size": pointer.size, "pointerSize": pointer.pointer_size}
    return fields


def _history_routes(repos: Repos) -> list[Route]:
    async def commits(request: HubRequest, repo: Repo) -> JsonResponse:
        fields = request.query_fields()
        at = revision_path_of(request)
        # The history of a single path is not supported: a path after the revision is read as part of the revision.
        whole = lookup.revision(repos, repo, request.param("rev")) if at.path.strip("/") else None
        revision = await (whole or lookup.revision_of(repos, repo, at))
        limit = min(max(_number(queries.last_value(fields, "limit"), DEFAULT_COMMITS), 1), MAX_COMMITS)
        total = await history_pages.total_commits(repos, repo, revision)
        position = _position(fields, revision.sha, limit, total)
        page = await history_pages.page_from(repos, repo, revision, position, limit)
        formatted = "formatted" in queries.all_values(fields, "expand")
        avatars = await _avatars(repos, {commit.author for commit in page.commits})
        items = [_describe_commit(commit, avatars, formatted=formatted) for commit in page.commits]
        response = JsonResponse(items, headers=revision_headers(revision))
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
        Query("limit", f"Commits per page: {DEFAULT_COMMITS} by default, at most {MAX_COMMITS:,}.", limit),
        Query("cursor", "From the Link header of the previous page."),
        Query("p", "The page number, from 0. Later pages are slow: follow the Link header instead.", number),
        Query("expand", "formatted: also return HTML; may be repeated."),
    )
    answers = {200: ("Newest first.", list[dict[str, Any]])}
    see = Action.REPO_SEE
    return api_routes(
        "GET", "/commits/{rev:path}", repo_endpoint(repos, see, commits), "The history of a repo", answers, query=query
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
        raise BadRequest("limit and p must be whole numbers of at most 9 digits.")
    return int(text)


async def _avatars(repos: Repos, authors: Collection[str]) -> dict[str, str]:
    """Return the avatars of authors who are users. A pushed commit may name anyone, so an avatar proves no more than
    the name.
    """

    async def unit(tx: Tx) -> dict[str, str]:
        found = {name: await store.owner_named(tx, name) for name in sorted(authors)[:MAX_AVATARS]}
        return {name: avatar_url(owner.id) for name, owner in found.items() if owner is not None}

    return await repos.db.read_long(unit)


def _describe_commit(commit: history.Commit, avatars: Mapping[str, str], *, formatted: bool) -> dict[str, Any]:
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
