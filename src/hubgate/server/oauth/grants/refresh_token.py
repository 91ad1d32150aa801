"""grant_type=refresh_token (RFC 6749, section 6), with rotation that tolerates lost responses and races.

A refresh token is valid until one minute after the first use of its successor, or of an access token issued with that
successor. Later use means that the token was stolen, so the whole family is revoked (attack O21).
"""

from dataclasses import dataclass
from typing import Any

from hubgate.server.accounts.tokens.text import TokenKind
from hubgate.server.oauth.errors import OAuthError, invalid_grant, invalid_scope, unauthorized_client
from hubgate.server.oauth.grants.pipeline import RESOURCE_TEXT, Authorization, Grant, GrantRequest, UserGrant, issue
from hubgate.server.oauth.tokens import store
from hubgate.server.oauth.tokens.issuance import successor_of
from hubgate.server.oauth.tokens.model import REFRESH_LIFETIME
from hubgate.server.scopes import IGNORED_SCOPES, parse_scopes
from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import Statement

_UNKNOWN = "The refresh token is unknown, revoked or expired. Sign in again."


async def answer(request: GrantRequest) -> dict[str, Any]:
    app, parameters = request.client, request.parameters
    key = request.key_of("refresh_token", TokenKind.REFRESH, _UNKNOWN)
    if not app.refresh_tokens:
        raise unauthorized_client("Refresh tokens are off in this app's settings.")
    names = [name for name in parse_scopes(parameters.get("scope") or "") if name not in IGNORED_SCOPES]
    successor = successor_of(parameters.require("refresh_token"), request.oauth.secret)
    return await issue(request, RefreshGrant(app, key, " ".join(names), *successor))


@dataclass(frozen=True)
class RefreshGrant(UserGrant):
    table = store.REFRESH_TOKENS
    successor: str = ""
    successor_key: bytes = b""

    async def find(self, tx: Tx, now: int) -> Authorization | OAuthError:
        found = await store.refresh_token_with_user(tx, self.key)
        if found is None or found[0].client_id != self.app.client_id:
            return invalid_grant(_UNKNOWN)
        token, user = found
        if token.grace_ends_at is not None and token.grace_ends_at <= now:
            await store.revoke_family(tx, token.family)
            return invalid_grant(_UNKNOWN)
        if token.expires_at <= now:
            return invalid_grant(_UNKNOWN)
        if not set(parse_scopes(self.requested_scopes)) <= set(parse_scopes(token.scopes)):
            return invalid_scope("A refresh can request fewer scopes, not more.", "scope")
        return Authorization(
            user,
            token.consent_id,
            token.scopes,
            token.resources,
            token.auth_time,
            token.family,
            claims=token.claims,
            supersedes=token.key,
        )

    def missing_consent_error(self) -> OAuthError:
        return invalid_grant(_UNKNOWN)

    async def consume(self, _tx: Tx, _found: Authorization, _now: int) -> OAuthError | None:
        """Does nothing: concurrent refreshes get the same successor."""
        return None

    def new_refresh_token(self, _found: Authorization, _scopes: str, now: int) -> tuple[str, list[Statement]]:
        return self.successor, store.rotating_refresh_token(self.key, self.successor_key, now, now + REFRESH_LIFETIME)


GRANT = Grant(
    type="refresh_token",
    parameters={
        "refresh_token": "the latest one",
        "scope": "fewer scopes than were granted; without it, all of them",
        "resource": RESOURCE_TEXT,
    },
    answer=answer,
    is_enabled=lambda app: app.refresh_tokens,
)
