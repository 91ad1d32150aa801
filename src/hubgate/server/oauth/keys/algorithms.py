"""The signature algorithms of ID tokens (RFC 7518, RFC 8037): keys, signatures and the hash in `at_hash`.

A key has one algorithm, so the `kid` in a token's header selects both (attack O48).
"""

import base64
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from hubgate.server.oauth.keys.model import DEFAULT_ALGORITHM

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | Ed25519PrivateKey
K = TypeVar("K", bound=PrivateKey)

_RSA_BITS = 2048
# Half of an ECDSA signature on P-256, and each coordinate of a public key.
_P256_BYTES = 32


class Algorithm(ABC, Generic[K]):
    name: str
    # Signing blocks the event loop for longer than handing it to a thread.
    is_slow: bool = False

    @abstractmethod
    def generate(self) -> K: ...

    @abstractmethod
    def public_members(self, private: K) -> dict[str, str]:
        """The required members of the public JWK, which its thumbprint covers (RFC 7638)."""

    @abstractmethod
    def sign(self, private: K, message: bytes) -> bytes: ...

    @abstractmethod
    def verify(self, jwk: Mapping[str, str], signature: bytes, message: bytes) -> bool: ...

    def half_hash(self, token: str) -> str:
        """The value of `at_hash`: half of the hash that the algorithm uses (OpenID Connect Core, section 3.1.3.6)."""
        return base64url(hashlib.sha256(token.encode()).digest()[:16])


class _RS256(Algorithm[rsa.RSAPrivateKey]):
    name = "RS256"
    is_slow = True

    def generate(self) -> rsa.RSAPrivateKey:
        return rsa.generate_private_key(public_exponent=65537, key_size=_RSA_BITS)

    def public_members(self, private: rsa.RSAPrivateKey) -> dict[str, str]:
        numbers = private.public_key().public_numbers()
        return {"e": _base64url_integer(numbers.e), "kty": "RSA", "n": _base64url_integer(numbers.n)}

    def sign(self, private: rsa.RSAPrivateKey, message: bytes) -> bytes:
        return private.sign(message, padding.PKCS1v15(), SHA256())

    def verify(self, jwk: Mapping[str, str], signature: bytes, message: bytes) -> bool:
        public = rsa.RSAPublicNumbers(_integer(jwk["e"]), _integer(jwk["n"])).public_key()
        try:
            public.verify(signature, message, padding.PKCS1v15(), SHA256())
        except (InvalidSignature, ValueError):
            return False
        return True


class _ES256(Algorithm[ec.EllipticCurvePrivateKey]):
    name = "ES256"

    def generate(self) -> ec.EllipticCurvePrivateKey:
        return ec.generate_private_key(ec.SECP256R1())

    def public_members(self, private: ec.EllipticCurvePrivateKey) -> dict[str, str]:
        numbers = private.public_key().public_numbers()
        x, y = (base64url(number.to_bytes(_P256_BYTES)) for number in (numbers.x, numbers.y))
        return {"crv": "P-256", "kty": "EC", "x": x, "y": y}

    def sign(self, private: ec.EllipticCurvePrivateKey, message: bytes) -> bytes:
        r, s = decode_dss_signature(private.sign(message, ec.ECDSA(SHA256())))
        # Two numbers of fixed length, not ASN.1 (RFC 7518, section 3.4).
        return r.to_bytes(_P256_BYTES) + s.to_bytes(_P256_BYTES)

    def verify(self, jwk: Mapping[str, str], signature: bytes, message: bytes) -> bool:
        if len(signature) != 2 * _P256_BYTES:
            return False
        public = ec.EllipticCurvePublicNumbers(_integer(jwk["x"]), _integer(jwk["y"]), ec.SECP256R1()).public_key()
        r, s = (int.from_bytes(part) for part in (signature[:_P256_BYTES], signature[_P256_BYTES:]))
        try:
            public.verify(encode_dss_signature(r, s), message, ec.ECDSA(SHA256()))
        except InvalidSignature:
            return False
        return True


class _EdDSA(Algorithm[Ed25519PrivateKey]):
    """Ed25519 (RFC 8037)."""

    name = "EdDSA"

    def generate(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.generate()

    def public_members(self, private: Ed25519PrivateKey) -> dict[str, str]:
        raw = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return {"crv": "Ed25519", "kty": "OKP", "x": base64url(raw)}

    def sign(self, private: Ed25519PrivateKey, message: bytes) -> bytes:
        return private.sign(message)

    def verify(self, jwk: Mapping[str, str], signature: bytes, message: bytes) -> bool:
        try:
            Ed25519PublicKey.from_public_bytes(decode_base64url(jwk["x"])).verify(signature, message)
        except InvalidSignature:
            return False
        return True

    def half_hash(self, token: str) -> str:
        """Half of SHA-512, the hash inside Ed25519: the specification names none, and libraries agree on this."""
        return base64url(hashlib.sha512(token.encode()).digest()[:32])


ALGORITHMS: dict[str, Algorithm[Any]] = {algorithm.name: algorithm for algorithm in (_RS256(), _ES256(), _EdDSA())}


def supported_or_default(name: object) -> str:
    """The algorithm that a client's metadata names, or RS256 if this hub does not sign with it."""
    return name if isinstance(name, str) and name in ALGORITHMS else DEFAULT_ALGORITHM


def key_id(members: Mapping[str, str]) -> str:
    """A prefix of the RFC 7638 thumbprint (required members, sorted, no white space), in hex for easy typing."""
    canonical = json.dumps(members, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(canonical).hexdigest()[:24]


def public_jwk(algorithm: str, members: Mapping[str, str]) -> str:
    jwk: dict[str, Any] = {**members, "use": "sig", "alg": algorithm, "kid": key_id(members)}
    return json.dumps(jwk)


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_base64url(part: str) -> bytes:
    return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)


def _base64url_integer(number: int) -> str:
    return base64url(number.to_bytes((number.bit_length() + 7) // 8))


def _integer(text: str) -> int:
    return int.from_bytes(decode_base64url(text))
