"""`id_token_hint`: an ID token from this hub, expired or not, that names the user the app expects."""

import base64
import json
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.keys.model import ALGORITHM


async def user_of_hint(oauth: OAuth, hint: str) -> str | None:
    """The user's id; None unless one of this hub's keys signed the hint with RS256 (attack O48: alg none, HS256).

    A retired key is accepted unless it was revoked: an app may store an ID token for years.
    """
    try:
        head, body, signature = hint.split(".")
        header, claims = _decode_object(head), _decode_object(body)
    except (ValueError, RecursionError):
        return None
    if header.get("alg") != ALGORITHM or claims.get("iss") != oauth.base_url:
        return None
    key = next((key for key in await oauth.keys.every() if key.kid == header.get("kid")), None)
    if key is None or key.revoked_at is not None:
        return None
    jwk = json.loads(key.public_jwk)
    public = rsa.RSAPublicNumbers(_decode_integer(jwk["e"]), _decode_integer(jwk["n"])).public_key()
    try:
        public.verify(_decode(signature), f"{head}.{body}".encode(), padding.PKCS1v15(), SHA256())
    except (InvalidSignature, ValueError):
        return None
    subject = claims.get("sub")
    return subject if isinstance(subject, str) else None


def _decode_object(part: str) -> dict[str, Any]:
    value = json.loads(_decode(part))
    if not isinstance(value, dict):
        raise ValueError("not an object")  # noqa: TRY004
    return value


def _decode(part: str) -> bytes:
    return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)


def _decode_integer(text: str) -> int:
    return int.from_bytes(_decode(text))
