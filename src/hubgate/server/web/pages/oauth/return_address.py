"""The address of an authorization request, passed through the sign-in page and back.

A long address is compressed: percent-encoded again inside `next`, it could exceed the length that proxies accept.
"""

import base64
import binascii
import zlib
from collections.abc import Iterable
from urllib.parse import urlencode

from hubgate.server.errors import BadRequest
from hubgate.server.http.forms import parse_fields
from hubgate.server.oauth.authorize import sign_in_mark
from hubgate.server.oauth.authorize.rules import PARAMETERS

PATH = "/oauth/authorize"
_PACKED = "_packed"
_LONGEST_PLAIN = 1500
_LONGEST_UNPACKED = 64 * 1024
_DAMAGED = "This address is damaged. Start again in the app."

Pairs = list[tuple[str, str]]


def address_of(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the address with only the known parameters."""
    query = urlencode([pair for pair in pairs if pair[0] in PARAMETERS or pair[0] == sign_in_mark.PARAMETER])
    if len(query) > _LONGEST_PLAIN:
        packed = base64.urlsafe_b64encode(zlib.compress(query.encode(), 9)).rstrip(b"=").decode()
        query = f"{_PACKED}={packed}"
    return f"{PATH}?{query}"


def parse_address(next_page: str) -> Pairs | None:
    """Return the parameters of an authorization address; None for any other address."""
    path, _, query = next_page.partition("?")
    return unpack(parse_fields(query.encode()).pairs) if path == PATH else None


def unpack(pairs: Pairs) -> Pairs:
    """Decompress the parameters of a long address."""
    found = next((value for name, value in pairs if name == _PACKED), None)
    if found is None:
        return pairs
    reader = zlib.decompressobj()
    try:
        query = reader.decompress(base64.urlsafe_b64decode(found + "=" * (-len(found) % 4)), _LONGEST_UNPACKED)
    except (binascii.Error, ValueError, zlib.error):
        raise BadRequest(_DAMAGED) from None
    if not reader.eof:
        raise BadRequest(_DAMAGED)
    return parse_fields(query).pairs + [pair for pair in pairs if pair[0] != _PACKED]


def without_mark(pairs: Pairs) -> Pairs:
    return [pair for pair in pairs if pair[0] != sign_in_mark.PARAMETER]
