"""Requests for access to a gated repo: `/ask-access` and `/user-access-request/…`, and a report of all requests."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of, caller_of
from hubgate.server.access.policy import decide
from hubgate.server.clock import iso
from hubgate.server.edge.routes import KIB, Query, Route
from hubgate.server.errors import BadRequest, NotFound
from hubgate.server.http.forms import Fields
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.streaming import StreamedResponse
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.gating import access_requests, review
from hubgate.server.hub.gating.model import ACCEPTED, STATUSES, AccessRequest
from hubgate.server.hub.gating.review import BatchResult, Requester
from hubgate.server.hub.gating.store import RequestFilter
from hubgate.server.hub.repos.model import Repo, RepoType
from hubgate.server.paging import parse_page
from hubgate.server.web.api.listing import PAGING, page_response
from hubgate.server.web.api.repos import queries
from hubgate.server.web.avatars import avatar_url
from hubgate.server.web.repo_routes import api_routes, repo_endpoint
from hubgate.server.web.streamed_json import json_array

LONGEST_SEARCH = 100
MILLISECOND = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_Status = Literal["pending", "accepted", "rejected", "reset"]
_QUERY = (
    *PAGING,
    Query("q", "A part of the user's name."),
    Query("after", "Only requests after this time, in ISO 8601."),
    Query("before", "Only requests before this time, in ISO 8601."),
)


class AskForAccess(msgspec.Struct):
    """The answers to the questions in the repo's card."""

    fields: dict[str, str] | None = None


class AskedForAccess(msgspec.Struct):
    status: str


class HandleRequest(msgspec.Struct, rename="camel"):
    """A decision about a request, which is named by its user or its id. `pending` reopens it, `reset` deletes it."""

    status: _Status
    user: str | None = None
    user_id: str | None = None
    request_id: str | None = None
    rejection_reason: str | None = None


class GrantAccess(msgspec.Struct, rename="camel"):
    user: str | None = None
    user_id: str | None = None


class HandleBatch(msgspec.Struct):
    status: _Status
    requests: Annotated[list[Requester], msgspec.Meta(max_length=review.MAX_BATCH)]


class RequestUser(msgspec.Struct, rename="camel"):
    id: str = msgspec.field(name="_id")
    user: str
    fullname: str
    avatar_url: str
    email: str | UnsetType = UNSET
    is_pro: bool = False
    type: Literal["user"] = "user"


class ShownRequest(msgspec.Struct, rename="camel"):
    request_id: str
    user: RequestUser
    status: str
    timestamp: str
    reviewed_at: str | UnsetType = UNSET
    # The name of the user who decided.
    granted_by: str | UnsetType = UNSET
    rejection_reason: str | UnsetType = UNSET
    fields: dict[str, str] | UnsetType = UNSET


def routes(repos: Repos) -> list[Route]:
    async def ask(request: HubRequest, repo: Repo) -> JsonResponse:
        body = await request.read_json(AskForAccess) if await request.body() else AskForAccess()
        if repo.gated and decide(caller_of(request).identity, Action.REPO_READ_CONTENT, repo.as_resource()).allowed:
            # The owner and members need no request.
            return JsonResponse(AskedForAccess(ACCEPTED))
        found = await access_requests.ask(repos, repo, caller_of(request).user, body.fields or {})
        return JsonResponse(AskedForAccess(found.status))

    async def cancel(request: HubRequest, repo: Repo) -> JsonResponse:
        await access_requests.cancel(repos, repo, caller_of(request).user)
        return JsonResponse({"ok": True})

    async def list_all(request: HubRequest, repo: Repo) -> JsonResponse:
        status, fields = request.param("status"), request.query_fields()
        if status not in STATUSES:
            raise NotFound("The status must be pending, accepted or rejected.")
        page_request = parse_page(queries.paging(fields), review.CURSOR)
        page = await review.list_requests(repos, repo, _filter(status, fields), page_request)
        return page_response(request, repos.base_url, page, describe)

    async def handle(request: HubRequest, repo: Repo) -> JsonResponse:
        body = await request.read_json(HandleRequest)
        requester = Requester(body.user, body.user_id, body.request_id)
        await review.handle(repos, repo, requester, body.status, actor_of(request), body.rejection_reason or "")
        return JsonResponse({})

    async def grant(request: HubRequest, repo: Repo) -> JsonResponse:
        body = await request.read_json(GrantAccess)
        await review.grant(repos, repo, Requester(body.user, body.user_id), actor_of(request))
        return JsonResponse({})

    async def handle_batch(request: HubRequest, repo: Repo) -> JsonResponse:
        body = await request.read_json(HandleBatch)
        return JsonResponse(await review.handle_batch(repos, repo, body.requests, body.status, actor_of(request)))

    async def report(_: HubRequest, repo: Repo) -> StreamedResponse:
        # Names are ASCII without quotes, so no escaping is needed.
        headers = {
            "content-type": "application/json",
            "content-disposition": f'attachment; filename="{repo.name}-access-requests.json"',
        }
        return StreamedResponse(json_array(review.report(repos, repo), describe), headers)

    asks, read, manage = Action.REPO_ASK_ACCESS, Action.REPO_READ_REQUESTS, Action.REPO_MANAGE
    not_gated: dict[int, Any] = {400: ("The repo is not gated.", None)}
    missing = {404: ("No such request, or it already has this status.", None)}
    not_pending = {404: ("You have no pending request for this repo.", None)}
    at = "/user-access-request"

    def report_route(kind: RepoType) -> Route:
        path = f"/{kind.url_prefix}{{namespace}}/{{repo}}/user-access-report"
        summary = f"All requests for access to a {kind.value}, as JSON"
        return Route("GET", path, repo_endpoint(repos, read, report)(kind, path), Surface.FILE, summary)

    def posts(tail: str, action: Action, handler: Any, summary: str, answers: dict[int, Any], body: Any) -> list[Route]:
        endpoint = repo_endpoint(repos, action, handler)
        return api_routes("POST", tail, endpoint, summary, answers, body=body, body_cap=64 * KIB)

    return [
        *posts(
            "/ask-access",
            asks,
            ask,
            "Ask for access to a gated repo",
            {200: ("The status of the request.", AskedForAccess), **not_gated},
            AskForAccess,
        ),
        *posts(f"{at}/cancel", asks, cancel, "Withdraw your request for access to a repo", _done(not_pending), None),
        *api_routes(
            "GET",
            at + "/{status}",
            repo_endpoint(repos, read, list_all),
            "Requests for access to a repo: pending, accepted or rejected",
            {200: ("One page, the newest first.", list[ShownRequest])},
            query=_QUERY,
        ),
        *posts(
            f"{at}/handle",
            manage,
            handle,
            "Accept, reject, reopen or delete a request for access to a repo",
            _done({400: ("The repo is not gated, or the caller accepts their own request.", None), **missing}),
            HandleRequest,
        ),
        *posts(
            f"{at}/grant",
            manage,
            grant,
            "Grant a user access to a repo",
            _done(
                {
                    400: ("The repo is not gated, or the user already has access or is the caller.", None),
                    404: ("User not found.", None),
                }
            ),
            GrantAccess,
        ),
        *posts(
            f"{at}/batch",
            manage,
            handle_batch,
            "Handle many requests for access to a repo",
            {200: ("The result of each.", list[BatchResult]), **not_gated},
            HandleBatch,
        ),
        *map(report_route, RepoType),
    ]


def _done(answers: dict[int, Any]) -> dict[int, Any]:
    return {200: ("Done.", None), **answers}


def describe(found: AccessRequest) -> ShownRequest:
    user = RequestUser(
        id=found.user_id,
        user=found.user_name,
        fullname=found.user_fullname or found.user_name,
        avatar_url=avatar_url(found.user_id),
        email=found.email or UNSET,
    )
    return ShownRequest(
        request_id=found.id,
        user=user,
        status=found.status,
        timestamp=iso(found.created_at),
        reviewed_at=UNSET if found.reviewed_at is None else iso(found.reviewed_at),
        granted_by=found.reviewer_name or UNSET,
        rejection_reason=found.reason or UNSET,
        fields=found.answer_map or UNSET,
    )


def _filter(status: str, fields: Fields) -> RequestFilter:
    after = _time(queries.last_value(fields, "after"), "after")
    if after is not None:
        # Timestamps are shown in milliseconds: the request that has this one is not after it.
        after += MILLISECOND - 1 - after % MILLISECOND
    return RequestFilter(
        status,
        queries.last_value(fields, "q").strip()[:LONGEST_SEARCH],
        after,
        _time(queries.last_value(fields, "before"), "before"),
    )


def _time(text: str, name: str) -> int | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        # Not with timestamp(): a float is inexact by up to a microsecond.
        return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        raise BadRequest(f"{name} must be a time in ISO 8601, such as 2026-01-31T12:00:00Z.") from None
