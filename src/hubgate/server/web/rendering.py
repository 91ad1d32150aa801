"""Turning a template into an answer: autoescaped, with the visitor's theme and a CSRF field ready for any form."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from hubgate import __version__
from hubgate.server.errors import HubError
from hubgate.server.http.csrf import FIELD, Csrf
from hubgate.server.http.request import HubRequest
from hubgate.server.settings import Settings
from hubgate.server.web.pages.errors import advice_for
from hubgate.server.web.static import asset_url

THEME_COOKIE = "theme"
LONGEST_WAY_BACK = 2000
THEMES = ("system", "light", "dark")


class Pages:
    def __init__(self, settings: Settings, csrf: Csrf) -> None:
        self.settings = settings
        self._csrf = csrf
        self._templates = Environment(
            loader=FileSystemLoader(Path(__file__).with_name("templates")),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals.update(
            asset=asset_url,
            version=__version__,
            base_url=settings.base_url,
            hub_host=urlsplit(settings.base_url).netloc,
            themes=THEMES,
        )

    def page(self, request: HubRequest, template: str, status: int = 200, **values: Any) -> Response:
        csrf_value, new_cookie = self._csrf.field_for(request)
        html = self._templates.get_template(template).render(
            values,
            csrf_name=FIELD,
            csrf_value=csrf_value,
            theme=chosen_theme(request),
            here=_here(request),
        )
        response = HTMLResponse(html, status)
        if new_cookie is not None and _has_all_its_cookies(request):
            self._csrf.set_visitor_cookie(response, new_cookie)
        return response

    def error(self, request: HubRequest, error: HubError) -> Response:
        advice = advice_for(error)
        return self.page(
            request,
            "error.html",
            error.status,
            title=advice.title,
            code=error.status,
            cause=error.message,
            cure=advice.cure,
            request_id=request.request_id,
        )


def _has_all_its_cookies(request: HubRequest) -> bool:
    """A POST from another site comes without our Lax cookie; a new one would break the forms this browser has open."""
    from_here = request.headers.get("sec-fetch-site") in ("same-origin", "none")
    return request.method in ("GET", "HEAD") or from_here


def chosen_theme(request: HubRequest) -> str:
    theme = request.cookies.get(THEME_COOKIE, THEMES[0])
    return theme if theme in THEMES else THEMES[0]


def _here(request: HubRequest) -> str:
    """Where the theme form leads back to: this page, or home where this page is the answer to another form."""
    if request.method not in ("GET", "HEAD"):
        return "/"
    path = request.scope["raw_path"].decode("latin-1")
    query = request.scope["query_string"].decode("latin-1")
    here = f"{path}?{query}" if query else path
    return here if len(here) <= LONGEST_WAY_BACK else "/"
