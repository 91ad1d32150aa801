"""What the routes of doors have in common."""

from hubgate.server.edge.routes import KIB, Endpoint, Route
from hubgate.server.http.surface import Surface

NOTICE = "doors/notice.html"

# The longest password, every byte of it percent-encoded, and the rest of the form with the longest way back to an app.
_BODY_CAP = 32 * KIB


def door(
    method: str,
    path: str,
    endpoint: Endpoint,
    summary: str,
    *,
    secret_address: bool = True,
    leads_away: bool = False,
) -> Route:
    return Route(
        method,
        path,
        endpoint,
        Surface.PAGE,
        summary,
        body_cap=_BODY_CAP,
        secret_address=secret_address,
        leads_away=leads_away,
    )
