"""Proof Key for Code Exchange, S256 only (RFC 7636): with `plain`, anyone who sees the request has the verifier."""

import base64
import hashlib
import hmac
import re

METHOD = "S256"
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}\Z")
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}\Z")


def is_challenge(text: str) -> bool:
    return _CHALLENGE.match(text) is not None


def is_verifier(text: str) -> bool:
    return _VERIFIER.match(text) is not None


def verifier_matches(verifier: str, challenge: str) -> bool:
    digest = hashlib.sha256(verifier.encode()).digest()
    return hmac.compare_digest(base64.urlsafe_b64encode(digest).rstrip(b"=").decode(), challenge)
