"""`GET /xet/v1/reconstructions/…` (and `v2`), `/xet/v1/chunks/…`, and the signed ranges of xorbs they lead to."""

import asyncio
from collections.abc import Mapping
from typing import Any

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.edge.guard import storage_token_of
from hubgate.server.edge.routes import Handler, Route, public
from hubgate.server.errors import Forbidden, NotFound
from hubgate.server.http.asgi import ASGIApp
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.streaming import StreamedResponse
from hubgate.server.http.surface import Surface
from hubgate.server.hub.cas import files_store, store
from hubgate.server.hub.cas.files_store import ChunkedFile
from hubgate.server.hub.cas.lookups import look_up
from hubgate.server.hub.cas.model import StoredXorb
from hubgate.server.hub.cas.planning import plan_range
from hubgate.server.hub.cas.signed_ranges import VALIDITY_SECONDS, RangeGrant, range_grant
from hubgate.server.hub.cas.tables import XorbsOfFile
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.guests import store as guest_store
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.xet.hashes import parse_hash
from hubgate.server.hub.xet.plan import Plan
from hubgate.server.hub.xet.reconstruction import Link, ReconstructionV1, ReconstructionV2, answer_v1, answer_v2
from hubgate.server.web.files.responses import OutOfRange, Span, requested_span
from hubgate.server.web.files.stored_content import in_turn
from hubgate.server.web.xet.targets import read_endpoint
from hubgate.server.web.xet.tokens import STORAGE_PATH, with_older

BYTES = "application/octet-stream"
# Addresses that are signed before other requests get a turn.
_LINKS_PER_STEP = 50
NOT_FOUND = "This repo does not have such a file."


def routes(repos: Repos) -> list[Route]:
    async def plan_of(request: HubRequest, repo: Repo) -> tuple[Plan, Link] | Response:
        file = await _find(repos, repo, caller_of(request).identity, request.param("hash"))
        try:
            span = requested_span(request.headers.get("range"), None, "", file.size) or Span(0, file.size)
        except OutOfRange:
            return Response(status_code=416, headers={"content-range": f"bytes */{file.size}"})
        xorbs = XorbsOfFile(repos.db, repo.id, file.oid)
        plan, found = await plan_range(repos, xorbs, file.terms, span.start, span.end)
        return plan, await _links(repos, repo, plan, found)

    async def reconstruct_v1(request: HubRequest, repo: Repo) -> Response:
        found = await plan_of(request, repo)
        return found if isinstance(found, Response) else JsonResponse(await in_thread(answer_v1, *found))

    async def reconstruct_v2(request: HubRequest, repo: Repo) -> Response:
        found = await plan_of(request, repo)
        # A range for each link: object stores do not send several ranges at once.
        return found if isinstance(found, Response) else JsonResponse(await in_thread(answer_v2, *found, max_ranges=1))

    async def find_chunk(request: HubRequest, repo: Repo) -> Response:
        chunk = parse_hash(request.param("hash"))
        # Only uploads need it, and it is the most expensive request here.
        may_ask = storage_token_of(request).may_write
        answer = await look_up(repos, caller_of(request).identity, repo, chunk) if may_ask else None
        if answer is None:
            raise NotFound("No file that you may read has this chunk.")
        return Response(answer, media_type=BYTES)

    async def read_range(request: HubRequest) -> ASGIApp:
        grant = _verified_grant(repos, request)
        # The address ends with the repo, or with the file.
        xorb = await store.find(repos.db, grant.xorb_id)
        if xorb is None or not await files_store.refers_to(repos.db, grant.repo_id, grant.xorb_id):
            raise NotFound("The repo or the file was deleted.")
        span = _granted_span(request, grant, xorb.size)
        headers = {
            "content-type": BYTES,
            "content-length": str(span.length),
            "content-range": f"bytes {span.start}-{span.end - 1}/{xorb.size}",
        }
        if request.method == "HEAD":
            return Response(status_code=206, headers=headers)
        parts = in_turn(repos, request, repos.objects.get(xorb.key, span.start, span.end))
        return StreamedResponse(parts, headers, 206, repos.limits.stall_seconds)

    def route(path: str, handler: Handler[Repo], summary: str, answer: tuple[str, Any]) -> Route:
        answers = {200: answer, 404: ("There is no such file or chunk that you may read.", None)}
        return Route(
            "GET", STORAGE_PATH + path, read_endpoint(repos, handler), Surface.STORAGE, summary, answers=answers
        )

    parts = "The parts of the file, and addresses of their bytes."
    return [
        *(
            route(path, reconstruct_v1, "How a file is composed of chunks", (parts, ReconstructionV1))
            for path in with_older("/v1/reconstructions/{hash}", "/reconstruction/{hash}")
        ),
        route(
            "/v2/reconstructions/{hash}",
            reconstruct_v2,
            "How a file is composed of chunks, version 2",
            (parts, ReconstructionV2),
        ),
        *(
            route(path, find_chunk, "Find a stored chunk", ("A shard with the chunk.", None))
            for path in with_older("/v1/chunks/{prefix}/{hash}", "/chunk/{prefix}/{hash}")
        ),
        Route(
            "GET",
            STORAGE_PATH + "/ranges/{repo_id}/{xorb_id}",
            public(read_range),
            Surface.FILE,
            "Download a range of a xorb",
            answers={206: ("The bytes that the address was signed for.", None)},
            # The signature in the address grants access, so the address is not logged.
            secret_address=True,
        ),
    ]


async def _find(repos: Repos, repo: Repo, identity: Identity, name: str) -> ChunkedFile:
    """A file of the repo. Uploads of guests that no pull request uses are hidden from others (attack O72)."""
    parse_hash(name)
    file = await files_store.find_by_hash(repos.db, repo.id, name)
    if file is None:
        raise NotFound(NOT_FOUND, code="EntryNotFound")
    if not decide(identity, Action.REPO_WRITE, repo.as_resource()).allowed:
        oids, user_id = [file.oid], identity.user_id
        if await repos.db.read(lambda tx: guest_store.hidden_from(tx, repo.id, user_id, oids)):
            raise NotFound(NOT_FOUND, code="EntryNotFound")
    return file


async def _links(repos: Repos, repo: Repo, plan: Plan, xorbs: Mapping[bytes, StoredXorb]) -> Link:
    """The addresses of the ranges of a plan, each for one range: at the store, or else at the hub."""
    found: dict[tuple[bytes, int], str] = {}
    for name, fetches in (await in_thread(plan.fetches)).items():
        xorb = xorbs[name]
        for number, fetch in enumerate(fetches, 1):
            if number % _LINKS_PER_STEP == 0:
                await asyncio.sleep(0)
            span = fetch.stored_start, fetch.stored_end
            link = await repos.objects.link(xorb.key, VALIDITY_SECONDS, {"content-type": BYTES}, span)
            found[name, fetch.start] = link or range_grant(repos, repo.id, xorb.id, *span).url(repos)
    return lambda name, fetches: found[name, fetches[0].start]


def _verified_grant(repos: Repos, request: HubRequest) -> RangeGrant:
    query = request.query()
    numbers = [query.get(name, "") for name in ("start", "end", "expires")]
    if not all(number.isascii() and number.isdigit() and len(number) < 19 for number in numbers):
        raise Forbidden("This address is incomplete.")
    start, end, expires = map(int, numbers)
    grant = RangeGrant(request.param("repo_id"), request.param("xorb_id"), start, end, expires)
    grant.check(repos, query.get("signature", ""))
    return grant


def _granted_span(request: HubRequest, grant: RangeGrant, size: int) -> Span:
    """The requested range, or the whole range that was granted; Forbidden outside of it."""
    granted = Span(grant.start, grant.end)
    try:
        span = requested_span(request.headers.get("range"), None, "", size) or granted
    except OutOfRange:
        span = Span(size, size)
    if not granted.start <= span.start < span.end <= granted.end:
        raise Forbidden("This address is for another range of the xorb.")
    return span
