"""The session cookie, set and deleted in one place."""

from starlette.responses import Response

from hubgate.server.http.cookies import SESSION, delete_cookie, set_cookie
from hubgate.server.settings import Settings

# The longest that browsers store a cookie: the server decides when a session expires.
_SECONDS = 400 * 24 * 60 * 60


def remember(response: Response, settings: Settings, cookie: str) -> None:
    set_cookie(response, SESSION, cookie, secure=settings.secure, max_age=_SECONDS)


def forget(response: Response, settings: Settings) -> None:
    delete_cookie(response, SESSION, secure=settings.secure)
