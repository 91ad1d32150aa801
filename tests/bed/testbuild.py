"""The test build: the real hub plus routes that exist only in tests. tests/bed/testserve.py starts it."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.resource import HUB
from hubgate.server.accounts.model import Organization
from hubgate.server.app import build_app
from hubgate.server.edge.edge import Edge
from hubgate.server.edge.routes import (
    KIB,
    OWN_ACCOUNT,
    THE_HUB,
    Endpoint,
    Locator,
    PublicHandler,
    Route,
    Target,
    public,
    without_subject,
)
from hubgate.server.errors import OutcomeUnknown, StorageUnavailable
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.streaming import StreamedResponse
from hubgate.server.http.surface import Surface
from hubgate.server.hub.repos.model import Repo, RepoType
from hubgate.server.paging import next_link, page_of, parse_page
from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx
from hubgate.server.throttle.rate_limiter import Limit
from hubgate.server.web.account_paths import organization_locator
from hubgate.server.web.repo_routes import repo_endpoint

TABLE = "CREATE TABLE IF NOT EXISTS test_writes (name text PRIMARY KEY, value text NOT NULL)"


class Write(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    value: str


def build(hub: Hub) -> Edge:
    return build_app(hub, extra_routes=routes(hub))


def routes(hub: Hub) -> list[Route]:
    async def write(request: HubRequest) -> JsonResponse:
        given = await request.read_json(Write)
        sql = "INSERT INTO test_writes (name, value) VALUES (:name, :value) ON CONFLICT DO NOTHING"
        await hub.db.write(lambda tx: tx.exec(sql, {"name": given.name, "value": given.value}))
        return JsonResponse({"saved": given.name})

    async def names(request: HubRequest) -> JsonResponse:
        page_request = parse_page(request.query(), (str,))

        async def unit(tx: Tx) -> list[str]:
            sql = "SELECT name FROM test_writes WHERE name > :after ORDER BY name LIMIT :limit"
            after = page_request.after[0] if page_request.after else ""
            return [row[0] for row in await tx.all(sql, {"after": after, "limit": page_request.fetch_limit})]

        page = page_of(await hub.db.read_long(unit), page_request, lambda name: (name,))
        response = JsonResponse(page.items)
        if page.next_cursor:
            pairs = request.query_fields().pairs
            link = next_link(hub.settings.base_url, request.scope["raw_path"], pairs, page.next_cursor)
            response.headers["link"] = link
        return response

    async def echo(request: HubRequest) -> JsonResponse:
        return JsonResponse({"fields": (await request.read_form()).pairs, "ip": request.client_ip})

    sleepers = 0

    async def slow(request: HubRequest) -> JsonResponse:
        nonlocal sleepers
        sleepers += 1
        await asyncio.sleep(float(request.query()["seconds"]))
        return JsonResponse({"slept": True})

    async def count_sleepers(_: HubRequest) -> JsonResponse:
        return JsonResponse(sleepers)

    async def broken(_: HubRequest) -> Response:
        raise ValueError("token=hf_abcdefSECRET password=hunter2SECRET")

    async def limited(_: HubRequest) -> JsonResponse:
        await hub.limiter.take(Limit("test", 3, 60), "someone")
        return JsonResponse({"ok": True})

    async def who(request: HubRequest) -> JsonResponse:
        identity = caller_of(request).identity
        return JsonResponse({"kind": identity.kind.name})

    async def pipe(request: HubRequest) -> StreamedResponse:
        async def answer() -> AsyncGenerator[bytes, None]:
            yield b" "
            total = 0
            async for part in request.stream():
                total += len(part)
            yield str(total).encode()

        return StreamedResponse(answer(), {})

    async def endless(_: HubRequest) -> StreamedResponse:
        async def answer() -> AsyncGenerator[bytes, None]:
            while True:
                yield b"x"

        return StreamedResponse(answer(), {})

    async def unavailable(request: HubRequest) -> Response:
        kind = OutcomeUnknown if "unknown" in request.query() else StorageUnavailable
        raise kind from OSError("the disk is on fire")

    def api(method: str, path: str, handler: PublicHandler, **more: Any) -> Route:
        return Route(method, path, public(handler), Surface.API, "Only in tests", answers=_DONE, **more)

    # Not public, so that credentials are checked.
    who_endpoint = Endpoint(Action.REPO_LIST, THE_HUB, without_subject(who))
    return [
        api("POST", "/api/test/write", write, body=Write),
        api("GET", "/api/test/names", names),
        api("POST", "/api/test/echo", echo, body_cap=64 * KIB, body_seconds=2.0),
        api("GET", "/api/test/slow", slow),
        api("GET", "/api/test/sleepers", count_sleepers),
        api("GET", "/api/test/broken", broken),
        api("POST", "/api/test/pipe", pipe),
        api("GET", "/api/test/endless", endless),
        api("GET", "/api/test/unavailable", unavailable),
        api("GET", "/api/test/repos/{name}.git/info", _parts),
        api("GET", "/api/test/repos/{name}/info", _parts),
        api("POST", "/api/test/repos/fixed/info", _parts),
        Route("GET", "/oauth/test", public(_parts), Surface.PAGE, "A page"),
        Route("POST", "/oauth/test", public(_parts), Surface.OAUTH, "An endpoint"),
        api("POST", "/api/test/limited", limited),
        Route("GET", "/api/test/who", who_endpoint, Surface.API, "Only in tests", answers=_DONE),
        api("GET", "/api/test/part/{name}/rest/{tail:path}", _parts),
        *_careless_routes(hub),
    ]


def _careless_routes(hub: Hub) -> list[Route]:
    """Routes whose handlers check no permissions (attack O77)."""

    async def on_organization(_: HubRequest, organization: Organization) -> JsonResponse:
        return JsonResponse({"changed": organization.name})

    async def on_repo(_: HubRequest, repo: Repo) -> JsonResponse:
        return JsonResponse({"changed": repo.full_name})

    async def on_hub(_: HubRequest, __: None) -> JsonResponse:
        return JsonResponse({"changed": "all"})

    async def undeclared(_: HubRequest) -> Target[None]:
        return Target(None, HUB, Action.HUB_PUBLIC)

    members, repo = "/api/test/organizations/{name}/careless", "/api/test/careless/{namespace}/{repo}"
    for_admins = Endpoint(
        Action.ORG_WRITE_MEMBERS, organization_locator(hub.accounts, members, Surface.API), on_organization
    )
    for_writers = repo_endpoint(hub.repos, Action.REPO_WRITE, on_repo)(RepoType.MODEL, repo)
    for_operators = Endpoint(Action.OPERATOR_USE, THE_HUB, on_hub)
    weaker = Endpoint(Action.OPERATOR_USE, Locator((type(HUB),), undeclared), on_hub)
    text, done = "Only in tests", _DONE
    return [
        Route("POST", members, for_admins, Surface.API, text, answers=done),
        Route("POST", repo, for_writers, Surface.API, text, answers=done),
        Route("POST", "/oauth/test/careless", for_operators, Surface.PAGE, text),
        Route("GET", "/api/test/undeclared", weaker, Surface.API, text, answers=done),
    ]


def bare_route() -> Route:
    """A route that cannot be built. mypy rejects it too, or it would report the comment as unused."""
    return Route("POST", "/api/test/bare", _parts, Surface.API, "Bare")  # type: ignore[arg-type]


def mismatched_endpoint() -> Endpoint:
    """An endpoint whose handler expects an organization but would receive a caller."""

    async def handler(_: HubRequest, organization: Organization) -> JsonResponse:
        return JsonResponse({"changed": organization.name})

    return Endpoint(Action.ACCOUNT_READ_SETTINGS, OWN_ACCOUNT, handler)  # type: ignore[arg-type]


_DONE = {200: ("Done.", Any)}


async def _parts(request: HubRequest) -> JsonResponse:
    return JsonResponse(request.path_params)
