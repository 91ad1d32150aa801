"""A route of the operator's pages."""

from hubgate.server.access.actions import Action
from hubgate.server.edge.routes import KIB, THE_HUB, Endpoint, PublicHandler, Route, without_subject
from hubgate.server.http.surface import Surface


def operator_route(method: str, path: str, handler: PublicHandler, summary: str) -> Route:
    endpoint = Endpoint(Action.OPERATOR_USE, THE_HUB, without_subject(handler))
    return Route(method, path, endpoint, Surface.PAGE, summary, body_cap=16 * KIB)
