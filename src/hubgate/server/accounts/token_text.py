"""The text of a token: `hf_`, a kind, the hour it was made, randomness, and a checksum.

The checksum lets a mistyped token be refused without a look-up, and lets scanners of leaked secrets tell ours from
noise. The hour stands in clear and leads the primary key, so that new rows are neighbours and old ones are swept by
range; it is no secret.
"""

import hashlib
import re
import secrets
import string
import zlib
from enum import Enum

from hubgate.server.clock import HOUR

_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_BUCKET, _RANDOM, _CHECKSUM = 5, 30, 6


class TokenKind(Enum):
    """What stands after `hf_`. Existing clients refuse tokens that do not start with `hf_`."""

    PERSONAL = ""
    OAUTH = "oauth_"
    REFRESH = "refresh_"


_KINDS = "|".join(kind.value for kind in TokenKind)
_SHAPE = re.compile(rf"hf_({_KINDS})([0-9A-Za-z]{{{_BUCKET + _RANDOM + _CHECKSUM}}})\Z")


def new_token(kind: TokenKind, now: int) -> str:
    body = _base62(now // HOUR, _BUCKET) + "".join(secrets.choice(_DIGITS) for _ in range(_RANDOM))
    start = f"hf_{kind.value}{body}"
    return start + _checksum(start)


def token_key(token: str) -> bytes | None:
    """The primary key of a well-formed token: four bytes of its hour, then 28 of its SHA-256. None if mistyped."""
    match = _SHAPE.match(token)
    if match is None or _checksum(token[:-_CHECKSUM]) != token[-_CHECKSUM:]:
        return None
    hour = _number(match.group(2)[:_BUCKET])
    return (hour & 0xFFFFFFFF).to_bytes(4) + hashlib.sha256(token.encode()).digest()[:28]


def token_kind(token: str) -> TokenKind | None:
    match = _SHAPE.match(token)
    return TokenKind(match.group(1)) if match else None


def last_four(token: str) -> str:
    return token[-4:]


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode()), _CHECKSUM)


def _base62(number: int, length: int) -> str:
    digits = ""
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits = _DIGITS[digit] + digits
    return digits


def _number(text: str) -> int:
    value = 0
    for character in text:
        value = value * 62 + _DIGITS.index(character)
    return value
