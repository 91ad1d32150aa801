"""Refresh tokens: the successor is derived from the presented token, so that concurrent refreshes get the same one.

No usable token is stored, and a client that lost a response gets the same successor again.
"""

from hubgate.server.accounts.tokens.text import TokenKind, derived_token, new_token
from hubgate.server.oauth.tokens import store
from hubgate.server.oauth.tokens.model import REFRESH_LASTS, RefreshToken
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Tx

_PURPOSE = "refresh successor"


def successor_of(presented: str, secret: ServerSecret) -> tuple[str, bytes]:
    return derived_token(TokenKind.REFRESH, presented, secret.mac(_PURPOSE, presented.encode()))


async def add_first(
    tx: Tx,
    client_id: str,
    user_id: str,
    consent_id: str,
    scopes: str,
    resources: str,
    auth_time: int,
    family: str,
    now: int,
) -> tuple[str, bytes]:
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
        expires_at=now + REFRESH_LASTS,
        resources=resources,
    )
    await store.add_refresh_token(tx, token)
    return text, key
