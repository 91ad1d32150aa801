"""Who is asking, found out before any handler runs.

A route that is public asks nobody. Elsewhere a credential that is presented must be good: a bad one is refused even
where anonymous visitors are welcome, because its sender believes to be somebody. Cookies never count here for `/api/*`:
they identify pages alone.
"""

from hubgate.server.access.actions import Action
from hubgate.server.access.identity import Identity
from hubgate.server.errors import BadRequest, Unauthorized
from hubgate.server.http.request import HubRequest
from hubgate.server.http.routes import Route

# Existing clients compare this text to tell a bad token from a missing repo.
BAD_CREDENTIAL = "Invalid credentials in Authorization header"


async def guard(request: HubRequest, route: Route) -> None:
    if route.surface.value.cors and b"access_token=" in request.scope["query_string"]:
        # It would stand in logs, histories and referrers (RFC 9700, section 4.3.2).
        raise BadRequest("Send the token in the Authorization header, not in the address.")
    if route.action != Action.HUB_PUBLIC.rule.name:
        request.state.identity = _identify(request)


def _identify(request: HubRequest) -> Identity:
    if "authorization" in request.headers:
        raise Unauthorized(BAD_CREDENTIAL)
    return Identity.anonymous()
