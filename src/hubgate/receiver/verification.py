"""Authenticates deliveries: by the secret in a header, a `v1` signature with the secret, or a `v1a` signature.

Standard Webhooks signs `{webhook-id}.{webhook-timestamp}.{body}`. The body is treated as bytes and never parsed here.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from secrets import token_bytes

from hubgate.receiver.asgi import header_values

SECRET, ID, TIMESTAMP, SIGNATURE = b"x-webhook-secret", b"webhook-id", b"webhook-timestamp", b"webhook-signature"
TOLERANCE_SECONDS = 300
# A rotation has two signatures. The limit prevents wasted work.
MAX_SIGNATURES = 16

_SECRET_PREFIX, _KEY_PREFIX = "whsec_", "whpk_"
_ENTRY = re.compile(rb"(v[0-9]+[a-z]?),([A-Za-z0-9+/]+={0,2})")
_TIME = re.compile(rb"[0-9]{1,12}")
# Comparing digests under a random key does not leak even the length of a secret.
_BLIND = token_bytes(32)


class DeliveryRejected(Exception):
    """The delivery was rejected. 401: a header is missing, malformed or stale. 403: a secret or signature is wrong."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


# Takes a signature and the signed content; returns whether the signature is valid.
Check = Callable[[bytes, bytes], bool]


@dataclass(frozen=True)
class Verifier:
    """Authenticates deliveries. If neither secrets nor keys are configured, all deliveries are accepted."""

    secrets: tuple[str, ...] = ()
    key_checks: tuple[Check, ...] = ()

    @property
    def accepts_all(self) -> bool:
        return not self.secrets and not self.key_checks

    def check_headers(self, headers: Sequence[tuple[bytes, bytes]]) -> bool:
        """Check the headers; return whether `check_body` must verify a signature. Raises DeliveryRejected."""
        if self.accepts_all:
            return False
        given = header_values(headers, SECRET)
        if self.secrets and given and (len(given) > 1 or not self._is_known(given[0])):
            raise DeliveryRejected(403, "X-Webhook-Secret does not match the configured secret.")
        signatures = _signatures(header_values(headers, SIGNATURE))
        signed = [version for version, _ in signatures]
        if self.secrets and not given and b"v1" not in signed:
            raise DeliveryRejected(401, "X-Webhook-Secret is missing.")
        if not self.secrets and b"v1a" not in signed:
            raise DeliveryRejected(401, "webhook-signature is missing.")
        return (b"v1" in signed and bool(self.secrets)) or (b"v1a" in signed and bool(self.key_checks))

    def check_body(self, headers: Sequence[tuple[bytes, bytes]], body: bytes, now: float) -> None:
        """Verify signatures, after `check_headers` returned True. Each version that can be checked must be valid."""
        content = _content(headers, body, now)
        signatures = _signatures(header_values(headers, SIGNATURE))
        for version, checks in ((b"v1", tuple(map(_hmac_check, self.secrets))), (b"v1a", self.key_checks)):
            given = [signature for known, signature in signatures if known == version]
            if given and checks and not _any_valid(checks, given, content):
                raise DeliveryRejected(403, "webhook-signature was not created with the configured secret or key.")

    def _is_known(self, given: bytes) -> bool:
        """Whether the secret is configured. All secrets are always compared, against timing attacks."""
        is_valid = False
        for secret in self.secrets:
            is_valid |= hmac.compare_digest(_blinded(secret.encode()), _blinded(given))
        return is_valid


def create_verifier(secrets: Iterable[str], public_keys: Iterable[str]) -> Verifier:
    """Create a Verifier. Raises ValueError for an invalid secret or key, ImportError if keys need an extra."""
    known = tuple(secrets)
    # Anybody could sign with an empty key, and anybody knows an empty secret.
    if not all(map(hmac_key, known)):
        raise ValueError("A webhook secret is empty.")
    return Verifier(known, tuple(map(_ed25519_check, public_keys)))


def hmac_key(secret: str) -> bytes:
    """The HMAC key of a secret: the decoded base64 after `whsec_`, or the bytes of any other secret."""
    if secret.startswith(_SECRET_PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
        except binascii.Error:
            return secret.encode()
    return secret.encode()


def signed_content(delivery_id: bytes, timestamp: bytes, body: bytes) -> bytes:
    return b"%b.%b.%b" % (delivery_id, timestamp, body)


def _content(headers: Sequence[tuple[bytes, bytes]], body: bytes, now: float) -> bytes:
    ids, times = header_values(headers, ID), header_values(headers, TIMESTAMP)
    if len(ids) != 1 or len(times) != 1 or not _TIME.fullmatch(times[0]):
        raise DeliveryRejected(401, "webhook-id or webhook-timestamp is missing or malformed.")
    if abs(now - int(times[0])) > TOLERANCE_SECONDS:
        raise DeliveryRejected(401, "webhook-timestamp differs too much from this machine's clock.")
    return signed_content(ids[0], times[0], body)


def _signatures(values: list[bytes]) -> list[tuple[bytes, bytes]]:
    if not values:
        return []
    if len(values) > 1:
        raise DeliveryRejected(401, "webhook-signature is repeated.")
    entries = values[0].split()
    matches = [_ENTRY.fullmatch(entry) for entry in entries]
    if not entries or len(entries) > MAX_SIGNATURES or not all(matches):
        raise DeliveryRejected(401, "webhook-signature is malformed.")
    try:
        return [(match[1], _decoded(match[2])) for match in matches if match]
    except binascii.Error:
        raise DeliveryRejected(401, "webhook-signature is malformed.") from None


def _decoded(text: bytes) -> bytes:
    """Decode base64. Unused bits must be zero, so that each value has one encoding (RFC 4648, 3.5)."""
    value = base64.b64decode(text, validate=True)
    if base64.b64encode(value) != text:
        raise binascii.Error
    return value


def _any_valid(checks: Iterable[Check], signatures: Iterable[bytes], content: bytes) -> bool:
    is_valid = False
    given = list(signatures)
    for check in checks:
        for signature in given:
            is_valid |= check(signature, content)
    return is_valid


def _hmac_check(secret: str) -> Check:
    key = hmac_key(secret)
    return lambda signature, content: hmac.compare_digest(hmac.digest(key, content, hashlib.sha256), signature)


def _ed25519_check(public_key: str) -> Check:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise ImportError('public_key needs an extra. Run: pip install "hubgate[ed25519]"') from error
    try:
        key = Ed25519PublicKey.from_public_bytes(
            base64.b64decode(public_key.strip().removeprefix(_KEY_PREFIX), validate=True)
        )
    except (binascii.Error, ValueError):
        raise ValueError("public_key must be whpk_ followed by the base64 of 32 bytes.") from None

    def check(signature: bytes, content: bytes) -> bool:
        try:
            key.verify(signature, content)
        except InvalidSignature:
            return False
        return True

    return check


def _blinded(value: bytes) -> bytes:
    return hmac.digest(_BLIND, value, hashlib.sha256)
