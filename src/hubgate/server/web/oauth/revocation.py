"""`POST /oauth/revoke` (RFC 7009) and `POST /oauth/introspect` (RFC 7662)."""

from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from hubgate.server.accounts.tokens.text import TokenKind, read_token
from hubgate.server.edge.routes import KIB, Route, public
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import FORM_TYPE, HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.client_auth import ClientCredentials, authenticate, authenticate_with, client_credentials
from hubgate.server.oauth.consent import store as consent_store
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import InvalidClient, invalid_request
from hubgate.server.oauth.explain.recording import record_refusals
from hubgate.server.oauth.parameters import read_body
from hubgate.server.oauth.resource_servers import store as resource_store
from hubgate.server.oauth.resource_servers.management import SECRET_PREFIX, owner_is_disabled
from hubgate.server.oauth.resource_servers.model import ResourceServer
from hubgate.server.oauth.tokens import store
from hubgate.server.oauth.tokens.access_jwt import read_access_token, read_jwt
from hubgate.server.oauth.tokens.bearer import BearerTokens
from hubgate.server.oauth.tokens.introspection import (
    Asked,
    find_with_secret,
    introspect_for_app,
    introspect_for_server,
)
from hubgate.server.oauth.tokens.model import AppToken, RefreshToken
from hubgate.server.secret import fingerprint
from hubgate.server.storage.database import Tx
from hubgate.server.web.oauth.token import NO_STORE


class SubmittedToken(msgspec.Struct):
    token: str
    token_type_hint: str | UnsetType = UNSET
    client_id: str | UnsetType = UNSET
    client_secret: str | UnsetType = UNSET


class Introspection(msgspec.Struct):
    """The properties of a token. For an invalid token, or one that is neither of an app of the same owner nor for the
    resource server that asks, only `active` is present.
    """

    active: bool
    scope: str | UnsetType = UNSET
    client_id: str | UnsetType = UNSET
    username: str | UnsetType = UNSET
    # Only for access tokens.
    token_type: str | UnsetType = UNSET
    exp: int | UnsetType = UNSET
    iat: int | UnsetType = UNSET
    sub: str | UnsetType = UNSET
    # The servers an access token is for; the client id if the token is for this hub.
    aud: str | list[str] | UnsetType = UNSET
    iss: str | UnsetType = UNSET


def routes(oauth: OAuth, bearer: BearerTokens) -> list[Route]:
    async def revoke(request: HubRequest) -> JsonResponse:
        parameters = await read_body(request)
        app = await _app(oauth, request, client_credentials(request, parameters))
        await _revoke(oauth, app, parameters.require("token"))
        # Clients ignore the content (RFC 7009, section 2.2). Some fail if it is not JSON, and do not revoke their next
        # token.
        return JsonResponse({}, headers=NO_STORE)

    async def introspect(request: HubRequest) -> JsonResponse:
        parameters = await read_body(request)
        given = client_credentials(request, parameters)
        if server := await _resource_server(oauth, given):
            found = await introspect_for_server(bearer, server, parameters.require("token"))
            return JsonResponse(found, headers=NO_STORE)
        if given is None or not given.secret:
            asked = Asked(await _app(oauth, request, given), None)
        else:
            text = parameters.get("token") or ""
            read = read_token(text)
            asked = await _asked(oauth, given, request, read)
            # Not before the app is authenticated: a signature takes longer to verify than everything else.
            if read is None and (of_jwt := await read_jwt(oauth, text)):
                asked = await _asked(oauth, given, request, of_jwt)
        if not asked.app.confidential:
            raise InvalidClient("Only an app with a secret can introspect tokens.", basic=False)
        return JsonResponse(await introspect_for_app(oauth, asked, parameters.require("token")), headers=NO_STORE)

    return [
        _route(
            "/oauth/revoke",
            record_refusals(oauth, revoke),
            Surface.OAUTH,
            "Revoke a token",
            {200: ("The token is no longer valid.", dict)},
        ),
        _route(
            "/oauth/introspect",
            record_refusals(oauth, introspect),
            Surface.OAUTH_PRIVATE,
            "Whether a token is valid, and for what",
            {200: ("Whether the token is valid, and its properties if so.", Introspection)},
        ),
    ]


def _route(path: str, handler: Any, surface: Surface, summary: str, answers: dict[int, Any]) -> Route:
    return Route(
        "POST",
        path,
        public(handler),
        surface,
        summary,
        body=SubmittedToken,
        body_type=FORM_TYPE,
        answers={**answers, 400: ("Refused.", None), 401: ("The app's authentication failed.", None)},
        body_cap=64 * KIB,
    )


async def _app(oauth: OAuth, request: HubRequest, given: ClientCredentials | None) -> App:
    if given is None:
        raise InvalidClient("client_id is missing.", basic=False)
    return await authenticate(oauth, given, request.client_ip)


async def _asked(
    oauth: OAuth, given: ClientCredentials, request: HubRequest, read: tuple[TokenKind, bytes] | None
) -> Asked:
    """The app with this secret, and its access token with this key."""
    key = read[1] if read and read[0] is TokenKind.OAUTH else b""
    return await authenticate_with(oauth, given, request.client_ip, partial(find_with_secret, oauth, token=key))


async def _resource_server(oauth: OAuth, given: ClientCredentials | None) -> ResourceServer | None:
    """The resource server with these credentials; None if they are not those of a resource server."""
    if given is None or given.secret is None or not given.secret.startswith(SECRET_PREFIX):
        return None
    if "\0" in given.client_id:
        # PostgreSQL rejects NUL in a query parameter.
        return None
    server = await resource_store.find_with_secret(oauth.db, given.client_id, fingerprint(given.secret), oauth.clock())
    if server is not None and not server.is_active:
        raise InvalidClient(
            f"Control of {server.identifier} has not been proved yet: see the settings of the resource server.",
            basic=given.basic,
            about="client_id",
        )
    if server is not None and await owner_is_disabled(oauth, server):
        raise InvalidClient("The owner's account is disabled. Ask the operator.", basic=given.basic, about="client_id")
    return server


async def _revoke(oauth: OAuth, app: App, text: str) -> None:
    """Revoke a token. Revoking an unknown token succeeds; a token of another app is rejected (attack O51)."""
    read = await read_access_token(oauth, text)
    if read is None:
        return
    kind, key = read

    async def unit(tx: Tx) -> bool:
        found: AppToken | RefreshToken | None = None
        if kind is TokenKind.OAUTH:
            found = await store.token(tx, key)
        elif kind is TokenKind.REFRESH and await consent_store.lock_by_token(tx, store.REFRESH_TOKENS, key) is not None:
            found = await store.refresh_token(tx, key)
        if found is None:
            return True
        if found.client_id != app.client_id:
            return False
        if isinstance(found, RefreshToken):
            await store.revoke_family(tx, found.family)
        else:
            await store.revoke_token(tx, key)
        return True

    if not await oauth.db.write(unit):
        raise invalid_request("This token belongs to another app. Nothing was revoked.")
