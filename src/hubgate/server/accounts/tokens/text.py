"""The text of a token: `hf_`, its kind, the hour of its creation, randomness and a checksum.

The checksum allows mistyped tokens to be rejected without a lookup, and secret scanners to recognize the hub's tokens.
The hour, which is not secret, is the prefix of the primary key, so that new rows are adjacent and old rows can be
deleted by range.
"""

import hashlib
import re
import string
import zlib
from enum import Enum
from functools import lru_cache

from hubgate.server.clock import HOUR
from hubgate.server.secret import RandomText

_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
# Numbers are converted two digits at a time.
_PAIRS = tuple(first + second for first in _DIGITS for second in _DIGITS)
_PAIR_COUNT = len(_PAIRS)
_VALUE_OF = {digits: value for value, digits in enumerate(_PAIRS)} | {d: value for value, d in enumerate(_DIGITS)}
_HOUR_DIGITS, _RANDOM_DIGITS, _CHECKSUM_DIGITS = 5, 30, 6
_random_text = RandomText(_DIGITS)


class TokenKind(Enum):
    """The kind of a token, which follows `hf_`. Existing clients reject tokens that do not start with `hf_`."""

    PERSONAL = ""
    OAUTH = "oauth_"
    REFRESH = "refresh_"
    CODE = "code_"
    DEVICE = "device_"


_KIND_OF = {kind.value: kind for kind in TokenKind}
_SHAPE = re.compile(rf"hf_({'|'.join(_KIND_OF)})([0-9A-Za-z]{{{_HOUR_DIGITS + _RANDOM_DIGITS + _CHECKSUM_DIGITS}}})\Z")


def new_token(kind: TokenKind, now: int) -> tuple[str, bytes]:
    """Create a token; returns its text, to be shown once, and the primary key of its row."""
    hour = now // HOUR
    start = f"hf_{kind.value}{_hour_text(hour)}{_random_text(_RANDOM_DIGITS)}"
    text = start + _checksum(start)
    return text, _key(hour, text)


def derived_token(kind: TokenKind, previous: str, mac: bytes) -> tuple[str, bytes]:
    """Derive a token from a secret MAC of the token `previous`, with the same hour."""
    match = _SHAPE.match(previous)
    if match is None:
        raise ValueError("not a token")
    hour_digits = match.group(2)[:_HOUR_DIGITS]
    start = f"hf_{kind.value}{hour_digits}{_base62(int.from_bytes(mac), _RANDOM_DIGITS)}"
    text = start + _checksum(start)
    return text, _key(_hour_of(hour_digits), text)


def read_token(text: str) -> tuple[TokenKind, bytes] | None:
    """The kind and primary key of a well-formed token; None if the format or the checksum is wrong."""
    match = _SHAPE.match(text)
    if match is None or _from_base62(text[-_CHECKSUM_DIGITS:]) != zlib.crc32(text[:-_CHECKSUM_DIGITS].encode()):
        return None
    kind, body = match.groups()
    return _KIND_OF[kind], _key(_hour_of(body[:_HOUR_DIGITS]), text)


def _key(hour: int, text: str) -> bytes:
    """The primary key: four bytes of the hour, then 28 bytes of the SHA-256."""
    return (hour & 0xFFFFFFFF).to_bytes(4) + hashlib.sha256(text.encode()).digest()[:28]


def last_four(token: str) -> str:
    return token[-4:]


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode()), _CHECKSUM_DIGITS)


# Tokens in use were created in few different hours.
@lru_cache(maxsize=1024)
def _hour_text(hour: int) -> str:
    return _base62(hour, _HOUR_DIGITS)


@lru_cache(maxsize=1024)
def _hour_of(digits: str) -> int:
    return _from_base62(digits)


def _base62(number: int, length: int) -> str:
    """The last `length` digits of a number."""
    pairs = []
    for _ in range((length + 1) // 2):
        number, pair = divmod(number, _PAIR_COUNT)
        pairs.append(_PAIRS[pair])
    return "".join(reversed(pairs))[-length:]


def _from_base62(text: str) -> int:
    odd = len(text) % 2
    value = _VALUE_OF[text[0]] if odd else 0
    for start in range(odd, len(text), 2):
        value = value * _PAIR_COUNT + _VALUE_OF[text[start : start + 2]]
    return value
