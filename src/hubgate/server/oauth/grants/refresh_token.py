"""grant_type=refresh_token (RFC 6749, section 6), with rotation that tolerates lost responses and races.

A refresh token is valid until one minute after the first use of its successor, or of an access token issued with that
successor. Later use means that the token was stolen, so the whole family is revoked (attack O21).
"""

from dataclasses import dataclass
from typing import Any

from hubgate.server.accounts.model import User
from hubgate.server.accounts.tokens.text import TokenKind, read_token
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.consent import store as consent_store
from hubgate.server.oauth.errors import (
    OAuthError,
    invalid_grant,
    invalid_request,
    invalid_scope,
    invalid_target,
    unauthorized_client,
)
from hubgate.server.oauth.grants.request import GrantRequest
from hubgate.server.oauth.requested_scopes import IGNORED_SCOPES
from hubgate.server.oauth.resource_indicators import PARAMETER as RESOURCE
from hubgate.server.oauth.resource_indicators import WIDER, narrowed, requested_resources
from hubgate.server.oauth.tokens import issuance, rotation, store
from hubgate.server.oauth.tokens.issuance import TAKEN_BACK, SignedIn, TokenDetails, scopes_left
from hubgate.server.oauth.tokens.model import REFRESH_LASTS, RefreshToken
from hubgate.server.scopes import parse_scopes
from hubgate.server.storage.database import Tx

TYPE = "refresh_token"
PARAMETERS = {
    "refresh_token": "the latest one",
    "scope": "less than was given; without it, all of that",
    "resource": "for which servers, some of those that were authorized (RFC 8707); without it, all of them",
}

_UNKNOWN = "The refresh token is unknown, revoked or expired. Sign in again."


@dataclass(frozen=True)
class Refreshed:
    token: RefreshToken
    user: User
    access_token: str
    scopes: str


async def grant(asking: GrantRequest) -> dict[str, Any]:
    oauth, parameters, app = asking.oauth, asking.parameters, asking.app
    if app is None:
        raise invalid_request("client_id is missing.")
    presented = parameters.need("refresh_token")
    read = read_token(presented)
    if read is None or read[0] is not TokenKind.REFRESH:
        raise invalid_grant(_UNKNOWN)
    if not app.refresh_tokens:
        raise unauthorized_client("Refresh tokens are off in this app's settings.")
    requested_scopes = [name for name in parse_scopes(parameters.get("scope") or "") if name not in IGNORED_SCOPES]
    requested = requested_resources(parameters.all(RESOURCE), oauth.base_url)
    successor, successor_key = rotation.successor_of(presented, oauth.secret)
    now = oauth.clock()

    async def unit(tx: Tx) -> Refreshed | OAuthError:
        consented = await consent_store.lock_behind(tx, store.REFRESH_TOKENS, read[1])
        found = await store.refresh_token_with_user(tx, read[1])
        if consented is None or found is None or found[0].client_id != app.client_id:
            return invalid_grant(_UNKNOWN)
        token, user = found
        if token.ended_at is not None and token.ended_at <= now:
            await store.end_family(tx, token.family)
            return invalid_grant(_UNKNOWN)
        if token.expires_at <= now:
            return invalid_grant(_UNKNOWN)
        if user.disabled_at is not None:
            return invalid_grant("The user's account is disabled.")
        if not set(requested_scopes) <= set(parse_scopes(token.scopes)):
            return invalid_scope("A refresh may ask for less, never for more.", "scope")
        left = scopes_left(token.scopes, consented)
        if left is None:
            return invalid_grant(TAKEN_BACK)
        scopes = scopes_left(" ".join(requested_scopes), consented) if requested_scopes else left
        if scopes is None:
            return invalid_scope("The user took this back. Ask for less, or leave out scope.", "scope")
        resources = narrowed(token.resources, requested)
        if resources is None:
            return invalid_target(WIDER)
        access_token = await _issue_tokens(tx, app, token, successor_key, scopes, resources, now)
        return Refreshed(token, user, access_token, scopes)

    outcome = await oauth.db.write(unit)
    if isinstance(outcome, OAuthError):
        raise outcome
    return await issuance.answer(
        oauth,
        outcome.user,
        app.client_id,
        outcome.access_token,
        outcome.scopes,
        app.token_lifetime,
        refresh_token=successor,
        signed_in=SignedIn(outcome.token.auth_time, None),
    )


async def _issue_tokens(
    tx: Tx, app: App, token: RefreshToken, successor_key: bytes, scopes: str, resources: str, now: int
) -> str:
    new_expiry = now + REFRESH_LASTS
    await store.use_refresh_token(tx, token, now, new_expiry)
    successor = RefreshToken(
        key=successor_key,
        client_id=token.client_id,
        user_id=token.user_id,
        consent_id=token.consent_id,
        # All scopes and servers of the family: narrowing one response does not narrow the next (RFC 6749, section 6).
        scopes=token.scopes,
        auth_time=token.auth_time,
        family=token.family,
        predecessor=token.key,
        superseded_at=None,
        expires_at=new_expiry,
        resources=token.resources,
    )
    await store.add_refresh_token(tx, successor)
    wanted = TokenDetails(
        client_id=token.client_id,
        user_id=token.user_id,
        consent_id=token.consent_id,
        org_id=None,
        scopes=scopes,
        family=token.family,
        supersedes=token.key,
        lifetime=app.token_lifetime,
        resources=resources,
    )
    return await issuance.add_access_token(tx, wanted, now)
