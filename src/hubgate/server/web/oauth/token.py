"""`POST /oauth/token`."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from hubgate.server.access.caller import visitor_of
from hubgate.server.edge.routes import KIB, Route, public
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import FORM_TYPE, HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.client_auth import authenticate, client_credentials
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import OAuthError, invalid_request
from hubgate.server.oauth.explain.recording import record_refusals
from hubgate.server.oauth.grants.registry import GRANTS, WITHOUT_CLIENT
from hubgate.server.oauth.grants.request import GrantRequest
from hubgate.server.oauth.parameters import read_body

# RFC 6749, section 5.1; Pragma is for caches that ignore Cache-Control.
NO_STORE = {"cache-control": "no-store", "pragma": "no-cache"}


class TokenRequest(msgspec.Struct, omit_defaults=True):
    """For the documentation; which fields a grant needs, it says itself when one is missing."""

    grant_type: str
    client_id: str | UnsetType = UNSET
    client_secret: str | UnsetType = UNSET
    code: str | UnsetType = UNSET
    redirect_uri: str | UnsetType = UNSET
    code_verifier: str | UnsetType = UNSET
    refresh_token: str | UnsetType = UNSET
    device_code: str | UnsetType = UNSET
    subject_token: str | UnsetType = UNSET
    subject_token_type: str | UnsetType = UNSET
    scope: str | UnsetType = UNSET
    resource: str | list[str] | UnsetType = UNSET


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
        return JsonResponse(await answer(oauth, request), headers=NO_STORE)

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
                401: ("The app did not prove itself.", None),
                429: ("Too many failed proofs, or the daily quota of an exchange is used up.", None),
            },
            body_cap=64 * KIB,
        )
    ]


async def answer(oauth: OAuth, request: HubRequest) -> dict[str, Any]:
    parameters = await read_body(request)
    visitor = visitor_of(request)
    kind = parameters.need("grant_type")
    grant = GRANTS.get(kind)
    if grant is None:
        raise OAuthError("unsupported_grant_type", f"grant_type is one of {', '.join(GRANTS)}.")
    given = client_credentials(request, parameters)
    if given is None and kind not in WITHOUT_CLIENT:
        raise invalid_request("client_id is missing.")
    app = await authenticate(oauth, given, visitor.ip) if given else None
    return await grant(GrantRequest(oauth, parameters, app, given, visitor))
