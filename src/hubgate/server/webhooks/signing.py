"""The signatures of a delivery (Standard Webhooks): `v1` with the secret, or `v1a` with the webhook's own key. Pure."""

import base64
import binascii
import hashlib
import hmac

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_SECRET_PREFIX = "whsec_"  # noqa: S105 (how such a secret begins)


def signed_content(delivery_id: str, timestamp: int, body: bytes) -> bytes:
    return f"{delivery_id}.{timestamp}.".encode() + body


def with_secret(secret: str, content: bytes) -> str:
    digest = hmac.digest(hmac_key(secret), content, hashlib.sha256)
    return "v1," + base64.b64encode(digest).decode()


def with_key(key: Ed25519PrivateKey, content: bytes) -> str:
    return "v1a," + base64.b64encode(key.sign(content)).decode()


def hmac_key(secret: str) -> bytes:
    """What follows `whsec_` is base64; any other secret is its own bytes."""
    if secret.startswith(_SECRET_PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
        except binascii.Error:
            return secret.encode()
    return secret.encode()
