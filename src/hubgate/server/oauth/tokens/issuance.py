"""Issues tokens: stores access and refresh tokens, and builds the token response."""

from collections.abc import Collection, Sequence
from typing import Any

from msgspec import Struct

from hubgate.server.accounts.model import User
from hubgate.server.accounts.tokens.text import TokenKind, derived_token, new_token
from hubgate.server.clock import SECOND
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.tokens import idtoken, store
from hubgate.server.oauth.tokens.model import REFRESH_LIFETIME, AppToken, RefreshToken
from hubgate.server.scopes import parse_scopes
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import Statement

_SUCCESSOR = "refresh successor"


def scopes_left(scopes: str, consented: Collection[str]) -> str | None:
    """The scopes that are still consented to, in the same order; None if all were revoked."""
    left = " ".join(name for name in parse_scopes(scopes) if name in consented)
    return None if scopes and not left else left


class TokenDetails(Struct, frozen=True):
    """The properties of an access token to be created."""

    client_id: str
    user_id: str
    consent_id: str | None
    org_id: str | None
    scopes: str
    family: str
    supersedes: bytes | None
    lifetime: int
    resources: str = ""
    claims: str = ""


async def add_access_token(tx: Tx, details: TokenDetails, now: int, since: int = 0) -> str:
    """Create an access token and return its text."""
    text, token = new_access_token(details, now, since)
    await store.add_token(tx, token)
    return text


def new_access_token(details: TokenDetails, now: int, since: int = 0) -> tuple[str, AppToken]:
    """The text and the row of a new access token.

    `since` is when the conditions of an exchange began; created_at is never earlier, even if machines' clocks differ.
    """
    text, key = new_token(TokenKind.OAUTH, now)
    token = AppToken(
        key=key,
        client_id=details.client_id,
        user_id=details.user_id,
        consent_id=details.consent_id,
        org_id=details.org_id,
        scopes=details.scopes,
        family=details.family,
        supersedes=details.supersedes,
        created_at=max(now, since),
        expires_at=now + details.lifetime * SECOND,
        resources=details.resources,
        claims=details.claims,
    )
    return text, token


def successor_of(presented: str, secret: ServerSecret) -> tuple[str, bytes]:
    """The next refresh token and its key, derived from the presented token.

    So concurrent refreshes get the same one, a client that lost a response gets it again, and no usable token is
    stored.
    """
    return derived_token(TokenKind.REFRESH, presented, secret.mac(_SUCCESSOR, presented.encode()))


def new_refresh_token(
    client_id: str,
    user_id: str,
    consent_id: str,
    scopes: str,
    resources: str,
    auth_time: int,
    family: str,
    now: int,
    claims: str = "",
) -> tuple[str, Statement]:
    """The text of the first refresh token of a sign-in, and the statement that adds it."""
    text, key = new_token(TokenKind.REFRESH, now)
    token = RefreshToken(
        key=key,
        client_id=client_id,
        user_id=user_id,
        consent_id=consent_id,
        scopes=scopes,
        auth_time=auth_time,
        family=family,
        predecessor=None,
        superseded_at=None,
        expires_at=now + REFRESH_LIFETIME,
        resources=resources,
        claims=claims,
    )
    return text, store.adding_refresh_token(token)


class SignInDetails(Struct, frozen=True):
    """The user's sign-in, for the ID token."""

    auth_time: int
    nonce: str | None


async def token_response(
    oauth: OAuth,
    user: User,
    app: App,
    access_token: str,
    scopes: str,
    lifetime: int,
    *,
    refresh_token: str | None = None,
    signed_in: SignInDetails | None = None,
    groups: Sequence[str] | None = None,
) -> dict[str, Any]:
    """The token response (RFC 6749, section 5.1), with an ID token if openid was granted."""
    body: dict[str, Any] = {
        "access_token": access_token,
        "token_type": "bearer",
        "expires_in": lifetime,
        "scope": scopes,
    }
    if refresh_token is not None:
        body["refresh_token"] = refresh_token
    names = parse_scopes(scopes)
    if "openid" in names:
        algorithm = app.id_token_signed_response_alg
        claims = idtoken.claims(user, names, app.client_id, oauth.base_url, oauth.clock(), access_token, algorithm)
        if signed_in is not None:
            claims["auth_time"] = signed_in.auth_time // SECOND
            if signed_in.nonce is not None:
                claims["nonce"] = signed_in.nonce
        if groups is not None:
            claims["groups"] = groups
        body["id_token"] = await oauth.signer.sign(claims, algorithm=algorithm)
    return body
