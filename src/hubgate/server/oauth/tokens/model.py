"""Codes, access tokens and refresh tokens as stored."""

from msgspec import Struct

from hubgate.server.clock import DAY, SECOND

CODE_LIFETIME = 60 * SECOND
# Retention after expiry, to detect replays. An attacker replays quickly; a later replay is from a browser history or a
# log, gains nothing, and must not sign the user out.
CODE_RETENTION = 600 * SECOND
REFRESH_LIFETIME = 90 * DAY
REFRESH_GRACE = 60 * SECOND


class Code(Struct, frozen=True):
    key: bytes
    client_id: str
    consent_id: str
    user_id: str
    redirect_uri: str
    # 0 if the request had no redirect_uri, because the app has only one.
    redirect_uri_sent: int
    scopes: str
    challenge: str | None
    nonce: str | None
    auth_time: int
    expires_at: int
    redeemed_at: int | None
    family: str
    resources: str
    # The requested claims (oauth/claims.py).
    claims: str


class AppToken(Struct, frozen=True):
    key: bytes
    client_id: str
    user_id: str
    consent_id: str | None
    org_id: str | None
    scopes: str
    family: str
    supersedes: bytes | None
    created_at: int
    expires_at: int
    # The servers the token was requested for (resource_indicators.py); empty for this hub.
    resources: str
    claims: str


class RefreshToken(Struct, frozen=True):
    key: bytes
    client_id: str
    user_id: str
    consent_id: str
    scopes: str
    auth_time: int
    family: str
    predecessor: bytes | None
    superseded_at: int | None
    expires_at: int
    resources: str
    claims: str

    @property
    def grace_ends_at(self) -> int | None:
        """The end of the grace period; None while the successor is unused. Later use means a stolen copy."""
        return None if self.superseded_at is None else self.superseded_at + REFRESH_GRACE
