"""The cookies that pages set: the session, and a message shown once after a redirect (flash), with a MAC."""

import base64

from hubgate.server.http.cookies import FLASH, SESSION, delete_cookie, read_cookie, set_cookie
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.secret import ServerSecret
from hubgate.server.settings import Settings

# The longest lifetime that browsers allow. The server decides when a session expires.
_SESSION_SECONDS = 400 * 24 * 60 * 60
_FLASH_SECONDS = 120
_PURPOSE = "flash"
_MAC_LENGTH = 32


def set_session(response: Response, settings: Settings, cookie: str) -> None:
    set_cookie(response, SESSION, cookie, secure=settings.secure, max_age=_SESSION_SECONDS)


def clear_session(response: Response, settings: Settings) -> None:
    delete_cookie(response, SESSION, secure=settings.secure)


def set_flash(response: Response, secret: ServerSecret, text: str, *, secure: bool) -> None:
    body = text.encode()
    value = base64.urlsafe_b64encode(secret.mac(_PURPOSE, body) + body).decode()
    set_cookie(response, FLASH, value, secure=secure, max_age=_FLASH_SECONDS)


def read_flash(request: HubRequest, secret: ServerSecret, *, secure: bool) -> str:
    """Return the message, or "" if this hub did not write it: over http, a sibling domain can set our cookies."""
    cookie = read_cookie(request, FLASH, secure=secure)
    if not cookie:
        return ""
    try:
        value = base64.urlsafe_b64decode(cookie.encode())
        valid = secret.mac_matches(_PURPOSE, value[_MAC_LENGTH:], value[:_MAC_LENGTH])
        return value[_MAC_LENGTH:].decode() if valid else ""
    except ValueError:
        return ""


def clear_flash(response: Response, *, secure: bool) -> None:
    delete_cookie(response, FLASH, secure=secure)
