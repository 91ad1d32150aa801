"""The session cookie, set and taken away in one place."""

from starlette.responses import Response

from hubgate.server.http.csrf import SESSION_COOKIE
from hubgate.server.settings import Settings

# As long as browsers keep a cookie at all: the server decides when a session is over.
_SECONDS = 400 * 24 * 60 * 60


def remember(response: Response, settings: Settings, cookie: str) -> None:
    response.set_cookie(
        SESSION_COOKIE, cookie, max_age=_SECONDS, path="/", secure=settings.secure, httponly=True, samesite="lax"
    )


def forget(response: Response, settings: Settings) -> None:
    response.delete_cookie(SESSION_COOKIE, path="/", secure=settings.secure, httponly=True, samesite="lax")
