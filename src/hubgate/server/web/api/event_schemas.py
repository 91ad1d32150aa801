"""The kinds of events, and a JSON Schema of the webhook payload for each."""

from typing import Any

from hubgate.server.edge.routes import Route, public
from hubgate.server.errors import NotFound
from hubgate.server.events.kinds import Kind
from hubgate.server.http.asgi import ASGIApp
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface

PATH = "/api/event-schemas"
_CACHED = {"cache-control": "public, max-age=300"}


def routes(base_url: str) -> list[Route]:
    addresses = {kind: f"{base_url}{PATH}/{kind.full_name}" for kind in Kind}
    by_name = {kind.full_name: kind.schema(address) for kind, address in addresses.items()}
    listing = [
        {
            "name": kind.full_name,
            "scope": kind.scope,
            "action": kind.action,
            "domain": kind.domain,
            "when": kind.when,
            "schema": address,
        }
        for kind, address in addresses.items()
    ]

    async def kinds(_: HubRequest) -> ASGIApp:
        return JsonResponse(listing, headers=_CACHED)

    async def schema(request: HubRequest) -> ASGIApp:
        found = by_name.get(request.param("name"))
        if found is None:
            raise NotFound("Kind of event not found.")
        return JsonResponse(found, headers=_CACHED)

    api = Surface.API
    return [
        Route(
            "GET",
            PATH,
            public(kinds),
            api,
            "All kinds of events",
            answers={200: ("Each kind with the address of its schema.", list[dict[str, Any]])},
        ),
        Route(
            "GET",
            f"{PATH}/{{name}}",
            public(schema),
            api,
            "The JSON Schema of a kind of event",
            answers={200: ("A JSON Schema, draft 2020-12.", dict[str, Any]), 404: ("Kind of event not found.", None)},
        ),
    ]
