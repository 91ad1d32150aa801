"""`/discussions` of a repo: list discussions and pull requests; close, reopen and remove pull requests."""

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.resource import Post
from hubgate.server.clock import iso
from hubgate.server.edge.routes import KIB, Check, Handler, Query, Route, Target
from hubgate.server.errors import NotFound
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import pull_requests, store
from hubgate.server.hub.discussions.model import Discussion
from hubgate.server.hub.discussions.pull_requests import NO_DISCUSSION
from hubgate.server.hub.discussions.store import DiscussionFilter
from hubgate.server.hub.repos.model import Repo
from hubgate.server.ids import new_id
from hubgate.server.web.api.repos import queries
from hubgate.server.web.avatars import avatar_url
from hubgate.server.web.repo_routes import (
    EndpointForType,
    FindTarget,
    api_routes,
    repo_endpoint,
    repo_endpoint_with_target,
)

ROWS = 50
LAST_PAGE = 1_000
_NUMBER = re.compile(r"[1-9][0-9]{0,8}\Z")
_TYPES = {"all": None, "discussion": False, "pull_request": True}
# "open" includes drafts.
_STATUSES: Mapping[str, tuple[str, ...] | None] = {
    "all": None,
    "open": ("draft", "open"),
    "closed": ("closed", "merged"),
}


class StatusRequest(msgspec.Struct):
    status: Literal["open", "closed"]
    # Sent by existing clients; not stored, because there are no comments yet.
    comment: str | None = None


class RepoDiscussion(msgspec.Struct, frozen=True):
    repo: Repo
    discussion: Discussion


def routes(repos: Repos) -> list[Route]:
    async def list_all(request: HubRequest, repo: Repo) -> JsonResponse:
        fields = request.query_fields()
        discussion_filter = DiscussionFilter(
            _TYPES.get(queries.last_value(fields, "type", "all")),
            _STATUSES.get(queries.last_value(fields, "status", "all")),
            queries.last_value(fields, "author") or None,
        )
        page = queries.last_value(fields, "p", "0")
        start = min(int(page), LAST_PAGE) * ROWS if page.isascii() and page.isdigit() and len(page) < 9 else 0
        found, total = await repos.db.read_long(lambda tx: store.page(tx, repo.id, discussion_filter, start, ROWS))
        shown = [_describe(repo, discussion, author) for discussion, author in found]
        return JsonResponse({"discussions": shown, "count": total, "start": start})

    async def set_status(request: HubRequest, found: RepoDiscussion) -> JsonResponse:
        body, user = await request.read_json(StatusRequest), caller_of(request).user
        await pull_requests.set_status(repos, found.repo, found.discussion, user, body.status)
        now = repos.clock()
        event = {
            "id": new_id(now),
            "type": "status-change",
            "createdAt": iso(now),
            "author": _author(user.id, user.name),
            "data": {"status": body.status},
        }
        return JsonResponse({"newStatus": event})

    async def remove(_: HubRequest, found: RepoDiscussion) -> JsonResponse:
        await pull_requests.remove(repos, found.repo, found.discussion)
        return JsonResponse({})

    async def delete_ref(request: HubRequest, found: RepoDiscussion) -> JsonResponse:
        await pull_requests.delete_ref(repos, found.repo, found.discussion, caller_of(request).user)
        return JsonResponse({})

    def find_discussion(action: Action) -> FindTarget[RepoDiscussion]:
        async def find(request: HubRequest, repo: Repo) -> Target[RepoDiscussion]:
            number = _NUMBER.match(request.param("num"))
            discussion = await store.find(repos.db, repo.id, int(number[0])) if number else None
            if discussion is None:
                raise NotFound(NO_DISCUSSION)
            repo_resource = repo.as_resource()
            post = Post(repo_resource, discussion.author_id)
            return Target(RepoDiscussion(repo, discussion), repo_resource, further_checks=((Check(action, post),),))

        return find

    def discussion_endpoint(action: Action, handler: Handler[RepoDiscussion]) -> EndpointForType:
        return repo_endpoint_with_target(repos, (Action.REPO_SEE, action), find_discussion(action), handler)

    done: Mapping[int, tuple[str, Any]] = {
        200: ("Done.", dict[str, Any]),
        409: ("Not possible in the pull request's current status.", None),
    }
    query = (
        Query("p", f"The page number, from 0; a page has {ROWS} entries."),
        Query("type", "all, discussion or pull_request."),
        Query("status", "all, open or closed."),
        Query("author", "A user's name."),
    )
    one = "/discussions/{num}"
    return [
        *api_routes(
            "GET",
            "/discussions",
            repo_endpoint(repos, Action.REPO_SEE, list_all),
            "Discussions and pull requests of a repo",
            {200: ("Newest first.", dict[str, Any])},
            query=query,
        ),
        *api_routes(
            "POST",
            f"{one}/status",
            discussion_endpoint(Action.DISCUSSION_CLOSE, set_status),
            "Close or reopen a pull request of a repo",
            {**done, 422: ("The request is invalid.", None)},
            body=StatusRequest,
            body_cap=128 * KIB,
        ),
        *api_routes(
            "DELETE",
            one,
            discussion_endpoint(Action.DISCUSSION_MODERATE, remove),
            "Remove a pull request of a repo, with its ref and its files",
            done,
        ),
        *api_routes(
            "DELETE",
            f"{one}/ref",
            discussion_endpoint(Action.DISCUSSION_CLOSE, delete_ref),
            "Delete the ref of a closed pull request of a repo",
            done,
        ),
    ]


def _describe(repo: Repo, discussion: Discussion, author: str | None) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "num": discussion.num,
        "title": discussion.title,
        "status": discussion.status,
        "createdAt": iso(discussion.created_at),
        "isPullRequest": discussion.base is not None,
        "repo": {"name": repo.full_name, "type": repo.type},
        "pinned": False,
    }
    if author is not None:
        # Omitted for a deleted user.
        fields["author"] = _author(discussion.author_id, author)
    return fields


def _author(user_id: str, name: str) -> dict[str, Any]:
    return {"_id": user_id, "name": name, "type": "user", "avatarUrl": avatar_url(user_id)}
