"""`POST /oauth/revoke` (RFC 7009) and `POST /oauth/introspect` (RFC 7662)."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import Response

from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.model import User
from hubgate.server.accounts.tokens.text import TokenKind, read_token
from hubgate.server.clock import SECOND
from hubgate.server.edge.routes import KIB, Route, public
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import FORM_TYPE, HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.apps import store as app_store
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.client_auth import authenticate, client_credentials
from hubgate.server.oauth.consent import store as consent_store
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import InvalidClient, invalid_request
from hubgate.server.oauth.explain.recording import record_refusals
from hubgate.server.oauth.parameters import Parameters, read_body
from hubgate.server.oauth.tokens import store
from hubgate.server.oauth.tokens.issuance import scopes_left
from hubgate.server.oauth.tokens.model import AppToken, RefreshToken
from hubgate.server.storage.database import Tx
from hubgate.server.web.oauth.token import NO_STORE


class SubmittedToken(msgspec.Struct):
    token: str
    token_type_hint: str | UnsetType = UNSET
    client_id: str | UnsetType = UNSET
    client_secret: str | UnsetType = UNSET


class Introspection(msgspec.Struct):
    """The properties of a token. For an invalid token, or a token of another owner's app, only `active` is present."""

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


_INACTIVE: dict[str, Any] = {"active": False}


def routes(oauth: OAuth) -> list[Route]:
    async def revoke(request: HubRequest) -> Response:
        app, parameters = await _client(oauth, request)
        await _revoke(oauth, app, parameters.require("token"))
        return Response(status_code=200, headers=NO_STORE)

    async def introspect(request: HubRequest) -> JsonResponse:
        app, parameters = await _client(oauth, request)
        if not app.confidential:
            raise InvalidClient("Only an app with a secret can introspect tokens.", basic=False)
        return JsonResponse(await _introspect(oauth, app, parameters.require("token")), headers=NO_STORE)

    return [
        _route(
            "/oauth/revoke",
            record_refusals(oauth, revoke),
            Surface.OAUTH,
            "Revoke a token",
            {200: ("The token is no longer valid.", None)},
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


async def _client(oauth: OAuth, request: HubRequest) -> tuple[App, Parameters]:
    parameters = await read_body(request)
    given = client_credentials(request, parameters)
    if given is None:
        raise InvalidClient("client_id is missing.", basic=False)
    return await authenticate(oauth, given, request.client_ip), parameters


async def _revoke(oauth: OAuth, app: App, text: str) -> None:
    """Revoke a token. Revoking an unknown token succeeds; a token of another app is rejected (attack O51)."""
    read = read_token(text)
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


async def _introspect(oauth: OAuth, app: App, text: str) -> dict[str, Any]:
    match read_token(text):
        case (TokenKind.OAUTH, key):
            return await _introspect_access_token(oauth, app, key)
        case (TokenKind.REFRESH, key):
            return await _introspect_refresh_token(oauth, app, key)
    return _INACTIVE


async def _introspect_access_token(oauth: OAuth, app: App, key: bytes) -> dict[str, Any]:
    token = await store.token(oauth.db, key)
    if token is None or token.expires_at <= oauth.clock() or await _issued_to(oauth, app, token.client_id) is None:
        return _INACTIVE
    if token.org_id is not None and not await store.find_token(oauth.db, key, oauth.clock()):
        # The membership, plan or privilege that the exchange required has ended.
        return _INACTIVE
    user = await account_store.user(oauth.db, token.user_id)
    if user is None or user.disabled_at is not None:
        return _INACTIVE
    scopes = token.scopes
    if token.consent_id is not None:
        scopes = scopes_left(scopes, await _consented_scopes(oauth, token)) or ""
    response = _active(oauth, user, token, scopes, token.expires_at)
    servers = token.resources.split()
    if servers:
        response["aud"] = servers[0] if len(servers) == 1 else servers
    return {**response, "token_type": "bearer", "iat": token.created_at // SECOND}


async def _introspect_refresh_token(oauth: OAuth, app: App, key: bytes) -> dict[str, Any]:
    """Introspect a refresh token: active if a refresh would succeed. Only access tokens have a token_type (RFC 7662,
    section 2.2).
    """
    found = await store.refresh_token_with_user(oauth.db, key)
    if found is None:
        return _INACTIVE
    token, user = found
    ends_at = min(token.expires_at, token.grace_ends_at or token.expires_at)
    issued_to = await _issued_to(oauth, app, token.client_id)
    if ends_at <= oauth.clock() or issued_to is None or not issued_to.refresh_tokens or user.disabled_at is not None:
        return _INACTIVE
    scopes = scopes_left(token.scopes, await _consented_scopes(oauth, token))
    return _INACTIVE if scopes is None else _active(oauth, user, token, scopes, ends_at)


async def _consented_scopes(oauth: OAuth, token: AppToken | RefreshToken) -> frozenset[str]:
    consent = await consent_store.find(oauth.db, token.user_id, token.client_id)
    if consent is None:
        return frozenset()
    return consent.other_scopes if token.resources else consent.scopes


def _active(oauth: OAuth, user: User, token: AppToken | RefreshToken, scopes: str, expires_at: int) -> dict[str, Any]:
    return {
        "active": True,
        "scope": scopes,
        "client_id": token.client_id,
        "username": user.name,
        "exp": expires_at // SECOND,
        "sub": user.id,
        "aud": token.client_id,
        "iss": oauth.base_url,
    }


async def _issued_to(oauth: OAuth, app: App, client_id: str) -> App | None:
    """The app the token was issued to, if the calling app is the same or has the same owner."""
    if app.client_id == client_id:
        return app
    other = await app_store.find(oauth.db, client_id)
    if other is None or other.self_registered or (app.owner_id, app.org_id) != (other.owner_id, other.org_id):
        return None
    return other
