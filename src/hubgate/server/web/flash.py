"""One sentence after a redirect: what was done. It travels in a cookie, under a MAC, and is shown once."""

import base64

from starlette.responses import Response

from hubgate.server.http.request import HubRequest
from hubgate.server.secret import ServerSecret

COOKIE = "flash"
_PURPOSE = "flash"
_MAC = 32
_SECONDS = 120


def leave(response: Response, secret: ServerSecret, text: str, *, secure: bool) -> None:
    body = text.encode()
    value = base64.urlsafe_b64encode(secret.mac(_PURPOSE, body) + body).decode()
    response.set_cookie(COOKIE, value, max_age=_SECONDS, path="/", secure=secure, httponly=True, samesite="lax")


def read(request: HubRequest, secret: ServerSecret) -> str:
    """Nothing unless we wrote it: a neighbouring host may set cookies for us."""
    cookie = request.cookies.get(COOKIE)
    if not cookie:
        return ""
    try:
        given = base64.urlsafe_b64decode(cookie.encode())
        fits = secret.mac_matches(_PURPOSE, given[_MAC:], given[:_MAC])
        return given[_MAC:].decode() if fits else ""
    except ValueError:
        return ""


def forget(response: Response) -> None:
    response.delete_cookie(COOKIE, path="/")
