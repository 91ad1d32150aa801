"""Creates deliveries as a hub sends them: body and headers, with secret and signatures."""

import base64
import hashlib
import hmac
import json
import os
import time
import uuid
from dataclasses import dataclass
from typing import Any

from hubgate import __version__
from hubgate.depth import HEADER as DEPTH
from hubgate.receiver.testing.samples import sample
from hubgate.receiver.verification import hmac_key, signed_content


@dataclass(frozen=True)
class SignedDelivery:
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@dataclass(frozen=True)
class Key:
    """The key pair of a webhook. `public` is the receiver's public_key."""

    public: str
    private: Any

    def sign(self, content: bytes) -> bytes:
        signature: bytes = self.private.sign(content)
        return signature


def new_secret() -> str:
    """A random secret in the format that the hub's page generates."""
    return "whsec_" + base64.b64encode(os.urandom(24)).decode()


def new_key() -> Key:
    """A random key pair. Needs `hubgate[ed25519]`."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError as error:
        raise ImportError('Keys need an extra. Run: pip install "hubgate[ed25519]"') from error
    private = Ed25519PrivateKey.generate()
    return Key("whpk_" + base64.b64encode(private.public_key().public_bytes_raw()).decode(), private)


def signed_delivery(
    content: str | dict[str, Any],
    *,
    secret: str | None = None,
    key: Key | None = None,
    old_secret: str | None = None,
    id: str | None = None,  # noqa: A002
    at: float | None = None,
    attempt: int = 1,
    sequence: int = 1,
    depth: int = 0,
    test: bool = False,
    **more: Any,
) -> SignedDelivery:
    """A signed delivery. `content` is a kind, whose sample is sent (`more` is passed to `sample`), or a payload.

    With `secret`, the delivery has the secret and a `v1` signature, and a second one with `old_secret`, as during a
    rotation. With `key` alone, the delivery has a `v1a` signature. Use the same `id` again to simulate a retry.
    """
    payload = sample(content, **more) if isinstance(content, str) else {**content, **more}
    body = json.dumps(payload).encode()
    delivery_id = id or uuid.uuid4().hex
    timestamp = str(int(time.time() if at is None else at))
    to_sign = signed_content(delivery_id.encode(), timestamp.encode(), body)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"hubgate-webhook/{__version__}",
        "webhook-id": delivery_id,
        "webhook-timestamp": timestamp,
        "X-Hubgate-Webhook": payload.get("webhook", {}).get("id", "0" * 24),
        "X-Hubgate-Attempt": str(attempt),
        "X-Hubgate-Sequence": str(sequence),
        DEPTH: str(depth),
        **({"X-Hubgate-Test": "1"} if test else {}),
    }
    if secret is not None:
        headers["X-Webhook-Secret"] = secret
        secrets = [secret, *([] if old_secret is None else [old_secret])]
        headers["webhook-signature"] = " ".join(_v1(value, to_sign) for value in secrets)
    elif key is not None:
        headers["webhook-signature"] = "v1a," + base64.b64encode(key.sign(to_sign)).decode()
    return SignedDelivery(headers, body)


def _v1(secret: str, content: bytes) -> str:
    return "v1," + base64.b64encode(hmac.digest(hmac_key(secret), content, hashlib.sha256)).decode()
