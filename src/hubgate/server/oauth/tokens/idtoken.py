"""ID tokens: signed with the app's algorithm (OpenID Connect Core, section 2), and verified as `id_token_hint`."""

import asyncio
import json
from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from hubgate.server.accounts.model import User
from hubgate.server.clock import SECOND
from hubgate.server.errors import Unavailable
from hubgate.server.oauth.keys.algorithms import ALGORITHMS, PrivateKey, base64url, decode_base64url
from hubgate.server.oauth.keys.model import DEFAULT_ALGORITHM
from hubgate.server.oauth.keys.ring import KeyRing

LIFETIME_SECONDS = 60 * 60
# The claims of every ID token; the last two only if the user signed in.
BASE_CLAIMS = ("iss", "sub", "aud", "iat", "exp", "at_hash", "auth_time", "nonce")
# The claims that each scope adds, to ID tokens and to userinfo.
CLAIMS_BY_SCOPE: Mapping[str, tuple[str, ...]] = {
    "profile": ("name", "preferred_username", "profile", "picture", "website"),
    "email": ("email", "email_verified"),
}
# Bytes of JSON. Some apps store the ID token and its claims in one cookie of 4,096 bytes, where each byte of JSON takes
# about three.
MAX_USER_CLAIM_BYTES = 640


def user_claims(user: User, scopes: Collection[str], base_url: str) -> dict[str, Any]:
    """The claims about a user that the scopes allow, as listed in CLAIMS_BY_SCOPE."""
    claims: dict[str, Any] = {}
    if "profile" in scopes:
        claims |= {
            "name": user.display_name,
            "preferred_username": user.name,
            "profile": f"{base_url}/{user.name}",
            "picture": f"{base_url}/avatars/{user.id}.svg",
        }
        if user.website:
            claims["website"] = user.website
    if "email" in scopes:
        claims |= {"email": user.email, "email_verified": user.email_verified_at is not None}
    return claims


def claims(
    user: User,
    scopes: Collection[str],
    client_id: str,
    base_url: str,
    now: int,
    access_token: str,
    algorithm: str = DEFAULT_ALGORITHM,
) -> dict[str, Any]:
    """The claims of an ID token without auth_time and nonce, which only a sign-in by the user has."""
    return {
        "iss": base_url,
        "sub": user.id,
        "aud": client_id,
        "iat": now // SECOND,
        "exp": now // SECOND + LIFETIME_SECONDS,
        "at_hash": ALGORITHMS[algorithm].half_hash(access_token),
        **_short_claims(user, scopes, base_url),
    }


def _short_claims(user: User, scopes: Collection[str], base_url: str) -> dict[str, Any]:
    """`user_claims` within MAX_USER_CLAIM_BYTES: `website` is dropped first, then `name` becomes the user name.

    Userinfo has all claims in full (section 5.4).
    """
    shortened = user_claims(user, scopes, base_url)
    if _escaped_length(shortened) > MAX_USER_CLAIM_BYTES:
        shortened.pop("website", None)
        if "name" in shortened and _escaped_length(shortened) > MAX_USER_CLAIM_BYTES:
            shortened["name"] = user.name
    return shortened


def _escaped_length(claims: Mapping[str, Any]) -> int:
    """The length as JSON in ASCII, as apps store it; encoding is quick if nothing has to be escaped."""
    encoded = msgspec.json.encode(claims)
    return len(encoded) if encoded.isascii() else len(json.dumps(claims))


class Signer(Struct, frozen=True):
    """Signs and verifies ID tokens. Opened private keys never change and are cached; the choice of key is not."""

    ring: KeyRing
    _opened: dict[str, PrivateKey] = field(default_factory=dict)

    async def sign(self, claims: Mapping[str, Any], type_: str = "JWT", algorithm: str = DEFAULT_ALGORITHM) -> str:
        key = await self.ring.signing_key(algorithm)
        if key is None:
            raise Unavailable("No key signs ID tokens right now. Try again shortly.")
        private = self._opened.get(key.kid)
        if private is None:
            private = self._opened[key.kid] = self.ring.private_key(key)
        message = f"{_encode_json({'alg': algorithm, 'kid': key.kid, 'typ': type_})}.{_encode_json(claims)}"
        method = ALGORITHMS[algorithm]
        if method.is_slow:
            # Half a millisecond of CPU: in a thread, so that the event loop is not blocked.
            signature = await asyncio.to_thread(method.sign, private, message.encode())
        else:
            signature = method.sign(private, message.encode())
        return f"{message}.{base64url(signature)}"

    async def verified_subject(self, token: str, issuer: str) -> str | None:
        """The user's id in an ID token of this hub, expired or not; None if it is not an ID token of this hub."""
        claims = await self.id_token_claims(token, issuer)
        subject = claims.get("sub") if claims else None
        return subject if isinstance(subject, str) else None

    async def id_token_claims(self, token: str, issuer: str) -> Mapping[str, Any] | None:
        """The claims of an ID token of this hub, expired or not; None if it is not an ID token of this hub.

        A retired key is accepted unless it was revoked: an app may store an ID token for years.
        """
        claims = await self.verified_claims(token, issuer, "JWT")
        # Every ID token has at_hash. The same keys sign the identities for services behind the gateway.
        return claims if claims and "at_hash" in claims else None

    async def verified_claims(self, token: str, issuer: str, type_: str) -> dict[str, Any] | None:
        """The claims of a token of this type, expired or not; None if no key of this hub signed it.

        The algorithm is that of the key, so a header cannot choose a weaker one (attack O48: alg none, HS256).
        """
        try:
            head, body, signature = token.split(".")
            header, claims = _decode_object(head), _decode_object(body)
        except (ValueError, RecursionError):
            return None
        if header.get("typ") != type_ or claims.get("iss") != issuer:
            return None
        key = next((key for key in await self.ring.list_all() if key.kid == header.get("kid")), None)
        if key is None or key.revoked_at is not None or header.get("alg") != key.algorithm:
            return None
        try:
            signed = decode_base64url(signature)
        except ValueError:
            return None
        is_valid = ALGORITHMS[key.algorithm].verify(json.loads(key.public_jwk), signed, f"{head}.{body}".encode())
        return claims if is_valid else None


def _encode_json(value: Mapping[str, Any]) -> str:
    return base64url(msgspec.json.encode(value))


def _decode_object(part: str) -> dict[str, Any]:
    value = json.loads(decode_base64url(part))
    if not isinstance(value, dict):
        raise ValueError("not an object")  # noqa: TRY004
    return value
