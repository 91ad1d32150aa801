"""Endpoints that existing clients call on the side; this hub accepts the calls and has nothing to return."""

from typing import Any

import msgspec

from hubgate.server.edge.routes import Route, public
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface


class AgentHarnesses(msgspec.Struct, rename="camel"):
    standard_env_vars: list[str]
    harnesses: dict[str, Any]


def routes() -> list[Route]:
    return [
        Route(
            "GET",
            "/api/agent-harnesses",
            public(_agent_harnesses),
            Surface.API,
            "Agent harnesses known to the hub: none",
            answers={200: ("An empty list, which clients cache for a day.", AgentHarnesses)},
        ),
        Route(
            "HEAD",
            "/api/telemetry/{topic:path}",
            public(_telemetry),
            Surface.API,
            "Accepts a client's usage ping and stores nothing",
            answers={204: ("Nothing was stored.", None)},
        ),
    ]


async def _agent_harnesses(_: HubRequest) -> JsonResponse:
    return JsonResponse(AgentHarnesses([], {}), headers={"cache-control": "public, max-age=86400"})


async def _telemetry(_: HubRequest) -> Response:
    return Response(status_code=204)
