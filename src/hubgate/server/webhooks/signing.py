"""Delivery signatures (Standard Webhooks): `v1` with the secret, `v1a` with the webhook's Ed25519 key. No I/O."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

Sign = Callable[[bytes], str]

_SECRET_PREFIX = "whsec_"  # noqa: S105 (a prefix)


def signed_content(delivery_id: str, timestamp: int, body: bytes) -> bytes:
    return f"{delivery_id}.{timestamp}.".encode() + body


def hmac_signer(secret: str) -> Sign:
    """A function that signs content with a secret."""
    key = hmac_key(secret)
    return lambda content: "v1," + base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()


def ed25519_signer(key: Ed25519PrivateKey) -> Sign:
    return lambda content: "v1a," + base64.b64encode(key.sign(content)).decode()


def hmac_key(secret: str) -> bytes:
    """The HMAC key of a secret: the base64 after `whsec_` decoded, otherwise the bytes of the secret."""
    if secret.startswith(_SECRET_PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
        except binascii.Error:
            return secret.encode()
    return secret.encode()
