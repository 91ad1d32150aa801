"""`/discussions` of a repo: list, read, open, change, merge and remove discussions and pull requests."""

import contextlib
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.policy import decide, require
from hubgate.server.edge.routes import KIB, Query, Route
from hubgate.server.errors import BadRequest, Unavailable
from hubgate.server.http.forms import Fields
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import changes, merging, opening, proposed_changes, removal, store
from hubgate.server.hub.discussions.entries import store as entry_store
from hubgate.server.hub.discussions.model import Discussion, page_path
from hubgate.server.hub.discussions.store import DiscussionFilter
from hubgate.server.hub.git.program import GitFailed
from hubgate.server.hub.repos.model import Repo
from hubgate.server.web.api.repos import queries
from hubgate.server.web.api.repos.comments import TEXT_CAP
from hubgate.server.web.api.repos.discussion_wire import describe, describe_entries, describe_entry
from hubgate.server.web.discussion_targets import RepoDiscussion, discussion_endpoint
from hubgate.server.web.repo_routes import api_routes, repo_endpoint

_T = TypeVar("_T")

ROWS = 50
LAST_PAGE = 1_000
TYPES = {"all": None, "discussion": False, "pull_request": True}
# "open" includes drafts.
STATUSES: Mapping[str, tuple[str, ...] | None] = {
    "all": None,
    "open": ("draft", "open"),
    "closed": ("closed", "merged"),
}


class NewDiscussion(msgspec.Struct, rename="camel"):
    title: str
    description: str = ""
    pull_request: bool = False


class StatusRequest(msgspec.Struct):
    status: Literal["open", "closed"]
    comment: str | None = None


class TitleRequest(msgspec.Struct):
    title: str


class MergeRequest(msgspec.Struct):
    comment: str | None = None
    # The commit that was reviewed; if the pull request has another head, it is not merged.
    head: str | None = None


class PinRequest(msgspec.Struct):
    pinned: bool


def routes(repos: Repos) -> list[Route]:
    return [*_reading_routes(repos), *_changing_routes(repos), *_merge_and_moderation_routes(repos)]


def _reading_routes(repos: Repos) -> list[Route]:
    async def list_all(request: HubRequest, repo: Repo) -> JsonResponse:
        fields = request.query_fields()
        discussion_filter = DiscussionFilter(
            _choice(fields, "type", TYPES),
            _choice(fields, "status", STATUSES),
            queries.last_value(fields, "author") or None,
            queries.last_value(fields, "search").strip()[:200] or None,
        )
        page = queries.last_value(fields, "p", "0")
        start = min(int(page), LAST_PAGE) * ROWS if page.isascii() and page.isdigit() and len(page) < 9 else 0
        found, total = await repos.db.read_long(lambda tx: store.page(tx, repo.id, discussion_filter, start, ROWS))
        shown = [describe(repo, one.discussion, one.author) | {"numComments": one.comments} for one in found]
        return JsonResponse({"discussions": shown, "count": total, "start": start})

    async def details(request: HubRequest, found: RepoDiscussion) -> JsonResponse:
        repo, discussion = found.repo, found.discussion
        conversation = await repos.db.read_long(lambda tx: entry_store.conversation(tx, repo.id, discussion.num))
        author = conversation.users.get(discussion.author_id)
        answer = describe(repo, discussion, author) | {"events": await describe_entries(repo, conversation)}
        if discussion.base is not None:
            merged = {"mergeCommitId": discussion.merge_sha} if discussion.merge_sha is not None else {}
            answer["changes"] = {"base": discussion.base, **merged}
            may_read = decide(caller_of(request).identity, Action.REPO_READ_CONTENT, repo.as_resource()).allowed
            # Conflicts reveal gated content: an author without access could guess lines and see whether they conflict.
            answer["filesWithConflicts"] = may_read and await _conflicts(repos, repo, discussion)
            if may_read and queries.flag(request.query_fields(), "diff"):
                # Left out if it takes too long: the rest can still be read.
                with contextlib.suppress(Unavailable, GitFailed):
                    answer["diff"] = await proposed_changes.unified_diff(repos, repo, discussion)
        return JsonResponse(answer)

    query = (
        Query("p", f"The page number, from 0; a page has {ROWS} entries."),
        Query("type", "Only discussions or only pull requests.", {"type": "string", "enum": list(TYPES)}),
        Query("status", "open includes drafts, closed includes merged.", {"type": "string", "enum": list(STATUSES)}),
        Query("author", "A user's name."),
        Query("search", "A part of the title."),
    )
    return [
        *api_routes(
            "GET",
            "/discussions",
            repo_endpoint(repos, Action.REPO_SEE, list_all),
            "Discussions and pull requests of a repo",
            {200: ("Newest first.", dict[str, Any]), 400: ("The type or the status is unknown.", None)},
            query=query,
        ),
        *api_routes(
            "GET",
            "/discussions/{num}",
            discussion_endpoint(repos, Action.REPO_SEE, details),
            "A discussion or pull request of a repo, with its comments and other events",
            {200: ("The discussion; for a pull request also its conflicts.", dict[str, Any])},
            query=(Query("diff", "Also the changes of a pull request, as `diff`.", {"type": "boolean"}),),
        ),
    ]


def _choice(fields: Fields, name: str, choices: Mapping[str, _T]) -> _T:
    """The value of a filter; "all" if it is empty."""
    given = queries.last_value(fields, name) or "all"
    if given not in choices:
        raise BadRequest(f"{name} must be one of {', '.join(choices)}.")
    return choices[given]


async def _conflicts(repos: Repos, repo: Repo, discussion: Discussion) -> list[str] | bool:
    """The conflicting files; True if they cannot be named, False if they are not known: finding them takes too long."""
    try:
        trial = await merging.conflicts_of(repos, repo, discussion)
    except (Unavailable, GitFailed):
        return False
    if trial is None or not trial.has_conflicts:
        return []
    return list(trial.conflicts) or True


def _changing_routes(repos: Repos) -> list[Route]:
    async def create(request: HubRequest, repo: Repo) -> JsonResponse:
        body = await request.read_json(NewDiscussion)
        open_one = opening.open_pull_request if body.pull_request else opening.open_discussion
        created = await open_one(repos, repo, caller_of(request), body.title, body.description)
        url = repos.base_url + page_path(repo, created.num)
        return JsonResponse({"num": created.num, "url": url, "pullRequest": body.pull_request})

    async def set_status(request: HubRequest, found: RepoDiscussion) -> JsonResponse:
        body, caller = await request.read_json(StatusRequest), caller_of(request)
        entry = await changes.set_status(repos, found.repo, found.discussion, caller, body.status, body.comment or "")
        return JsonResponse({"newStatus": await describe_entry(found.repo, entry)})

    async def set_title(request: HubRequest, found: RepoDiscussion) -> JsonResponse:
        body, caller = await request.read_json(TitleRequest), caller_of(request)
        entry = await changes.set_title(repos, found.repo, found.discussion, caller, body.title)
        return JsonResponse({"newTitle": await describe_entry(found.repo, entry)})

    done: Mapping[int, tuple[str, Any]] = {
        200: ("Done.", dict[str, Any]),
        409: ("Not possible in the discussion's current status.", None),
        422: ("The request is invalid.", None),
    }
    close, one = Action.DISCUSSION_CLOSE, "/discussions/{num}"
    all_routes = api_routes(
        "POST",
        "/discussions",
        repo_endpoint(repos, Action.DISCUSSION_OPEN, create),
        "Open a discussion or pull request in a repo",
        {200: ("Its number.", dict[str, Any]), 422: done[422]},
        body=NewDiscussion,
        body_cap=TEXT_CAP,
    )
    # Clients send either method.
    for method in ("POST", "PATCH"):
        all_routes += api_routes(
            method,
            f"{one}/status",
            discussion_endpoint(repos, close, set_status),
            "Close or reopen a discussion of a repo, or publish a draft",
            done,
            body=StatusRequest,
            body_cap=TEXT_CAP,
        )
        all_routes += api_routes(
            method,
            f"{one}/title",
            discussion_endpoint(repos, close, set_title),
            "Change the title of a discussion of a repo",
            done,
            body=TitleRequest,
            body_cap=16 * KIB,
        )
    return all_routes


def _merge_and_moderation_routes(repos: Repos) -> list[Route]:
    async def merge(request: HubRequest, found: RepoDiscussion) -> JsonResponse:
        body = await request.read_json(MergeRequest) if await request.body() else MergeRequest()
        caller = caller_of(request)
        if body.comment:
            require(caller.identity, Action.DISCUSSION_COMMENT, found.repo.as_resource())
        merged = await merging.merge(repos, found.repo, found.discussion, caller, body.comment or "", body.head)
        return JsonResponse({"status": merged.status, "mergeCommitId": merged.merge_sha})

    async def pin(request: HubRequest, found: RepoDiscussion) -> JsonResponse:
        body = await request.read_json(PinRequest)
        await changes.set_pinned(repos, found.repo, found.discussion, body.pinned)
        return JsonResponse({"pinned": body.pinned})

    async def remove(_: HubRequest, found: RepoDiscussion) -> JsonResponse:
        await removal.remove(repos, found.repo, found.discussion)
        return JsonResponse({})

    async def delete_ref(request: HubRequest, found: RepoDiscussion) -> JsonResponse:
        await removal.delete_ref(repos, found.repo, found.discussion, caller_of(request).user)
        return JsonResponse({})

    moderate, one = Action.DISCUSSION_MODERATE, "/discussions/{num}"
    done: Mapping[int, tuple[str, Any]] = {
        200: ("Done.", dict[str, Any]),
        409: ("Not possible in the discussion's current status.", None),
    }
    return [
        *api_routes(
            "POST",
            f"{one}/merge",
            discussion_endpoint(repos, Action.REPO_WRITE, merge),
            "Merge a pull request of a repo",
            {
                200: ("Merged.", dict[str, Any]),
                409: ("Not open, has another head, or conflicts with its target branch.", None),
            },
            body=MergeRequest,
            body_cap=TEXT_CAP,
        ),
        *api_routes(
            "POST",
            f"{one}/pin",
            discussion_endpoint(repos, moderate, pin),
            "Pin or unpin a discussion of a repo",
            {200: done[200], 422: ("The request is invalid.", None)},
            body=PinRequest,
            body_cap=4 * KIB,
        ),
        *api_routes(
            "DELETE",
            one,
            discussion_endpoint(repos, moderate, remove),
            "Remove a discussion or pull request of a repo, with its ref and its files",
            done,
        ),
        *api_routes(
            "DELETE",
            f"{one}/ref",
            discussion_endpoint(repos, Action.DISCUSSION_CLOSE, delete_ref),
            "Delete the ref of a closed or merged pull request of a repo",
            done,
        ),
    ]
