"""Token introspection (RFC 7662): an app asks about tokens of its owner's apps, a resource server about tokens for it.

Everything else is inactive, as is a token that has expired, was revoked, or lost its user, consent or membership.
"""

from typing import Any

from msgspec import Struct

from hubgate.server.accounts.tokens.text import TokenKind, read_token
from hubgate.server.clock import SECOND
from hubgate.server.oauth.apps import store as app_store
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.consent import store as consent_store
from hubgate.server.oauth.consent.model import scopes_on_all
from hubgate.server.oauth.consent.store import read_resource_scopes
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.resource_names import uri_of
from hubgate.server.oauth.resource_servers.model import ResourceServer
from hubgate.server.oauth.tokens import store
from hubgate.server.oauth.tokens.access_jwt import read_access_token
from hubgate.server.oauth.tokens.bearer import BearerTokens
from hubgate.server.oauth.tokens.issuance import scopes_left
from hubgate.server.oauth.tokens.model import AppToken, RefreshToken
from hubgate.server.oauth.tokens.store import IntrospectedToken
from hubgate.server.scopes import IDENTITY_SCOPES, parse_scopes

INACTIVE: dict[str, Any] = {"active": False}


class Asked(Struct, frozen=True):
    """An app that asks about a token, and the access token, read by the same statement; None if it is not valid."""

    app: App
    token: IntrospectedToken | None


async def find_with_secret(oauth: OAuth, client_id: str, secret: bytes, token: bytes) -> Asked | None:
    """The app with this secret, and the access token with this key; an empty key for any other text."""
    found = await store.introspect(oauth.db, client_id, secret, token, oauth.clock())
    return Asked(*found) if found else None


async def introspect_for_server(bearer: BearerTokens, server: ResourceServer, text: str) -> dict[str, Any]:
    """What a resource server may know: access tokens that are bound to it, of any app (attack O80)."""
    oauth, read = bearer.oauth, await read_access_token(bearer.oauth, text)
    if read is None or read[0] is not TokenKind.OAUTH:
        return INACTIVE
    token = await store.token(oauth.db, read[1])
    # A token from before the registration has the bare URI, and only scopes that identify the user. If it is for other
    # servers, too, they could use it here.
    if token is None or token.resources not in (server.target, server.uri):
        return INACTIVE
    if not server.serves(token.user_id):
        return INACTIVE
    # The server asks because it was presented with the token, so this is a use of the token.
    caller = await bearer.find(read[1])
    if caller is None:
        return INACTIVE
    allowed = caller.identity.scopes & (IDENTITY_SCOPES | server.scope_names)
    scopes = scopes_left(token.scopes, allowed)
    if scopes is None:
        # A refresh would fail, too. A server without scopes of its own has nothing else to check.
        return INACTIVE
    response = _active(oauth, caller.user.id, caller.user.name, token, scopes, token.expires_at)
    return {**response, **_of_access_token(token), "aud": server.identifier}


async def introspect_for_app(oauth: OAuth, found: Asked, text: str) -> dict[str, Any]:
    """What an app may know. `found` is the app, with the access token if `text` is one."""
    if found.token is not None:
        return _describe(oauth, found.token)
    match read_token(text):
        case (TokenKind.REFRESH, key):
            return await _introspect_refresh_token(oauth, found.app, key)
    return INACTIVE


def _describe(oauth: OAuth, found: IntrospectedToken) -> dict[str, Any]:
    token = found.token
    servers = token.resources.split()
    scopes = token.scopes
    if token.consent_id is not None:
        consented = parse_scopes(found.consented or "")
        allowed = scopes_on_all(read_resource_scopes(found.resource_scopes or "{}"), servers) if servers else consented
        scopes = scopes_left(scopes, allowed) or ""
    response = _active(oauth, token.user_id, found.user_name, token, scopes, token.expires_at)
    if servers:
        response["aud"] = uri_of(servers[0]) if len(servers) == 1 else [uri_of(name) for name in servers]
    return {**response, **_of_access_token(token)}


async def _introspect_refresh_token(oauth: OAuth, app: App, key: bytes) -> dict[str, Any]:
    """Introspect a refresh token: active if a refresh would succeed. Only access tokens have a token_type (RFC 7662,
    section 2.2).
    """
    found = await store.refresh_token_with_user(oauth.db, key)
    if found is None:
        return INACTIVE
    token, user = found
    ends_at = min(token.expires_at, token.grace_ends_at or token.expires_at)
    issued_to = await _issued_to(oauth, app, token.client_id)
    if ends_at <= oauth.clock() or issued_to is None or not issued_to.refresh_tokens or user.disabled_at is not None:
        return INACTIVE
    consent = await consent_store.find(oauth.db, token.user_id, token.client_id)
    scopes = scopes_left(token.scopes, consent.allowed_on_any(token.resources.split()) if consent else ())
    return INACTIVE if scopes is None else _active(oauth, user.id, user.name, token, scopes, ends_at)


def _active(
    oauth: OAuth, user_id: str, user_name: str, token: AppToken | RefreshToken, scopes: str, expires_at: int
) -> dict[str, Any]:
    return {
        "active": True,
        "scope": scopes,
        "client_id": token.client_id,
        "username": user_name,
        "exp": expires_at // SECOND,
        "sub": user_id,
        "aud": token.client_id,
        "iss": oauth.base_url,
    }


def _of_access_token(token: AppToken) -> dict[str, Any]:
    return {"token_type": "bearer", "iat": token.created_at // SECOND}


async def _issued_to(oauth: OAuth, app: App, client_id: str) -> App | None:
    """The app the token was issued to, if the calling app is the same or has the same owner."""
    if app.client_id == client_id:
        return app
    other = await app_store.find(oauth.db, client_id)
    if other is None or other.self_registered or (app.owner_id, app.org_id) != (other.owner_id, other.org_id):
        return None
    return other
