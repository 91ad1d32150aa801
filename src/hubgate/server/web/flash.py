"""A message shown once after a redirect, stored in a cookie with a MAC."""

import base64

from starlette.responses import Response

from hubgate.server.http.cookies import FLASH, delete_cookie, read_cookie, set_cookie
from hubgate.server.http.request import HubRequest
from hubgate.server.secret import ServerSecret

_PURPOSE = "flash"
_MAC = 32
_SECONDS = 120


def leave(response: Response, secret: ServerSecret, text: str, *, secure: bool) -> None:
    body = text.encode()
    value = base64.urlsafe_b64encode(secret.mac(_PURPOSE, body) + body).decode()
    set_cookie(response, FLASH, value, secure=secure, max_age=_SECONDS)


def read(request: HubRequest, secret: ServerSecret, *, secure: bool) -> str:
    """Return the message, or "" unless this hub wrote it: on http a neighbouring host can set our cookies."""
    cookie = read_cookie(request, FLASH, secure=secure)
    if not cookie:
        return ""
    try:
        given = base64.urlsafe_b64decode(cookie.encode())
        valid = secret.mac_matches(_PURPOSE, given[_MAC:], given[:_MAC])
        return given[_MAC:].decode() if valid else ""
    except ValueError:
        return ""


def forget(response: Response, *, secure: bool) -> None:
    delete_cookie(response, FLASH, secure=secure)
