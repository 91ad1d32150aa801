"""A route of the operator's pages."""

from starlette.types import ASGIApp

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.policy import require
from hubgate.server.access.resource import HUB
from hubgate.server.http.request import HubRequest
from hubgate.server.http.routes import KIB, Handler, Route
from hubgate.server.http.surface import Surface


def operator_route(method: str, path: str, handler: Handler, summary: str) -> Route:
    async def judged(request: HubRequest) -> ASGIApp:
        require(caller_of(request).identity, Action.OPERATOR_USE, HUB)
        return await handler(request)

    name = Action.OPERATOR_USE.rule.name
    return Route(method, path, judged, Surface.PAGE, name, summary, body_cap=16 * KIB)
