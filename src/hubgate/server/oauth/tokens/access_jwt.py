"""Access tokens as JWTs (RFC 9068), for resource servers that verify tokens with the published keys.

Such a token has a row like any other access token: its `jti` is the key of the row. So the hub knows when it was
revoked, and answers introspection and userinfo. Other servers accept it until it expires.
"""

from hubgate.server.accounts.model import User
from hubgate.server.accounts.tokens.text import TokenKind, read_token
from hubgate.server.clock import SECOND
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.resource_servers.model import ResourceServer

LIFETIME_SECONDS = 10 * 60
# The type in the header, which keeps ID tokens and access tokens apart (section 2.1).
TYPE = "at+jwt"
_KEY_BYTES = 32


async def sign(
    oauth: OAuth,
    server: ResourceServer,
    user: User,
    client_id: str,
    scopes: str,
    auth_time: int,
    stored: str,
    lifetime: int,
) -> str:
    """A JWT for an access token that was just stored as `stored`, a text that nobody gets (section 2.2)."""
    read, now = read_token(stored), oauth.clock() // SECOND
    if read is None:
        raise RuntimeError("not an access token")
    claims = {
        "iss": oauth.base_url,
        "sub": user.id,
        "username": user.name,
        "aud": server.identifier,
        "client_id": client_id,
        "scope": scopes,
        "iat": now,
        "exp": now + lifetime,
        "auth_time": auth_time // SECOND,
        "jti": read[1].hex(),
    }
    return await oauth.signer.sign(claims, TYPE)


async def read_access_token(oauth: OAuth, text: str) -> tuple[TokenKind, bytes] | None:
    """The kind and key of a token of this hub, opaque or a JWT; None for any other text."""
    return read_token(text) or await read_jwt(oauth, text)


async def read_jwt(oauth: OAuth, text: str) -> tuple[TokenKind, bytes] | None:
    """The kind and key of an access token that is a JWT; None if this hub did not sign it as one."""
    if text.count(".") != 2:
        return None
    claims = await oauth.signer.verified_claims(text, oauth.base_url, TYPE)
    try:
        key = bytes.fromhex(claims["jti"]) if claims else b""
    except (KeyError, TypeError, ValueError):
        return None
    return (TokenKind.OAUTH, key) if len(key) == _KEY_BYTES else None
