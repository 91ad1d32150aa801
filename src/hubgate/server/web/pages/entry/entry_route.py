"""The route of an entry page, and the template for a notice."""

from hubgate.server.edge.routes import KIB, Endpoint, Route
from hubgate.server.http.surface import Surface

NOTICE = "entry/notice.html"

# Fits the longest password, percent-encoded, and the other fields with the longest return address.
_BODY_CAP = 32 * KIB


def entry_route(
    method: str,
    path: str,
    endpoint: Endpoint,
    summary: str,
    *,
    secret_address: bool = True,
    leaves_hub: bool = False,
) -> Route:
    return Route(
        method,
        path,
        endpoint,
        Surface.PAGE,
        summary,
        body_cap=_BODY_CAP,
        secret_address=secret_address,
        leaves_hub=leaves_hub,
    )
