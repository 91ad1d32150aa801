"""`/healthz`, `/readyz` and, if configured for the public address, `/metrics`."""

import msgspec

from hubgate.server import metrics
from hubgate.server.edge.routes import PublicHandler, Route, public
from hubgate.server.errors import Unavailable
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.settings import Settings
from hubgate.server.storage.database import Database
from hubgate.server.storage.upgrade import SchemaState, schema_error, schema_state


class Status(msgspec.Struct):
    status: str


def routes(db: Database, settings: Settings) -> list[Route]:
    async def alive(_: HubRequest) -> JsonResponse:
        return JsonResponse(Status("ok"))

    async def ready(_: HubRequest) -> JsonResponse:
        state = await schema_state(db)
        if state is not SchemaState.CURRENT:
            raise Unavailable(schema_error(state))
        return JsonResponse(Status("ready"))

    async def prometheus_metrics(_: HubRequest) -> Response:
        return Response(metrics.exposition(), media_type=metrics.CONTENT_TYPE)

    probes = [
        _probe("/healthz", alive, "Whether the process is alive"),
        _probe("/readyz", ready, "Whether the database answers and has this version's schema"),
    ]
    if settings.metrics_listen == f"{settings.host}:{settings.port}":
        probes.append(Route("GET", "/metrics", public(prometheus_metrics), Surface.PROBE, "Metrics for Prometheus"))
    return probes


def _probe(path: str, handler: PublicHandler, summary: str) -> Route:
    return Route("GET", path, public(handler), Surface.PROBE, summary, answers={200: ("The probe succeeded.", Status)})
