"""`POST /oauth/token`: issues tokens for every grant."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from hubgate.server.access.caller import visitor_of
from hubgate.server.edge.routes import KIB, Route, public
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import FORM_TYPE, HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.client_auth import authenticate, authenticate_with, client_credentials
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import OAuthError
from hubgate.server.oauth.explain.recording import record_refusals
from hubgate.server.oauth.grants.pipeline import GrantRequest
from hubgate.server.oauth.grants.registry import GRANTS
from hubgate.server.oauth.parameters import read_body
from hubgate.server.oauth.resource_indicators import PARAMETER as RESOURCE

# RFC 6749, section 5.1: for caches that ignore Cache-Control, which every response has (http/headers.py).
NO_STORE = {"pragma": "no-cache"}


# Types of parameters that may be repeated; all others are strings.
_TYPES = {RESOURCE: str | list[str] | UnsetType}
_NAMES = ("client_id", "client_secret", *(name for grant in GRANTS.values() for name in grant.parameters))
TokenRequest = msgspec.defstruct(
    "TokenRequest",
    [("grant_type", str), *((name, _TYPES.get(name, str | UnsetType), UNSET) for name in dict.fromkeys(_NAMES))],
    namespace={"__doc__": "The parameters of all grants. `grant_type` decides which of them are used."},
    omit_defaults=True,
)


class TokenAnswer(msgspec.Struct):
    access_token: str
    token_type: str
    expires_in: int
    scope: str
    id_token: str | UnsetType = UNSET
    refresh_token: str | UnsetType = UNSET
    issued_token_type: str | UnsetType = UNSET


def routes(oauth: OAuth) -> list[Route]:
    async def token(request: HubRequest) -> JsonResponse:
        return JsonResponse(await token_response(oauth, request), headers=NO_STORE)

    return [
        Route(
            "POST",
            "/oauth/token",
            public(record_refusals(oauth, token)),
            Surface.OAUTH,
            "Get an access token",
            body=TokenRequest,
            body_type=FORM_TYPE,
            answers={
                200: ("A token.", TokenAnswer),
                400: ("Refused; error says why.", None),
                401: ("The app's authentication failed.", None),
                429: ("Too many failed authentications, or the daily quota of an exchange is used up.", None),
            },
            body_cap=64 * KIB,
        )
    ]


async def token_response(oauth: OAuth, request: HubRequest) -> dict[str, Any]:
    parameters = await read_body(request)
    visitor = visitor_of(request)
    kind = parameters.require("grant_type")
    grant = GRANTS.get(kind)
    if grant is None:
        raise OAuthError("unsupported_grant_type", f"grant_type must be one of {', '.join(GRANTS)}.")
    given = client_credentials(request, parameters)
    if given and given.secret and grant.find:
        subject = await authenticate_with(oauth, given, visitor.ip, grant.find(oauth, parameters))
        return await grant.answer(GrantRequest(oauth, parameters, subject.app, given, visitor, subject))
    app = await authenticate(oauth, given, visitor.ip) if given else None
    return await grant.answer(GrantRequest(oauth, parameters, app, given, visitor))
