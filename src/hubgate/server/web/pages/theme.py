"""The theme switch in the footer: a form, so that it works without JavaScript, and a cookie with the choice."""

from hubgate.server.clock import DAY, SECOND
from hubgate.server.edge.routes import KIB, Route, public
from hubgate.server.errors import Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import RedirectResponse, Response
from hubgate.server.http.surface import Surface
from hubgate.server.web.local_path import local_path
from hubgate.server.web.rendering import THEME_COOKIE, THEMES, Pages


def routes(pages: Pages) -> list[Route]:
    async def choose(request: HubRequest) -> Response:
        theme = request.form_fields.get("theme")
        if theme not in THEMES:
            raise Unprocessable(f"theme must be one of {', '.join(THEMES)}.")
        response = RedirectResponse(local_path(request.form_fields.get("next")), 303)
        response.set_cookie(THEME_COOKIE, theme, max_age=365 * DAY // SECOND, secure=pages.settings.secure)
        return response

    return [
        Route("POST", "/theme", public(choose), Surface.PAGE, "Choose light or dark", body_cap=16 * KIB),
    ]
