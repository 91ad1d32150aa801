"""Turning a template into an answer: autoescaped, with the visitor's theme and a CSRF field ready for any form."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse, Response

from hubgate import __version__
from hubgate.server.access.caller import caller_of
from hubgate.server.clock import iso
from hubgate.server.edge.edge import NOTHING_HERE
from hubgate.server.errors import FieldErrors, HubError, NotFound, TooManyRequests, Unauthorized
from hubgate.server.http.cookies import read_cookie
from hubgate.server.http.csrf import FIELD, Csrf
from hubgate.server.http.request import HubRequest
from hubgate.server.oauth.authorize.request import StoppedHere
from hubgate.server.oauth.cimd.documents import DocumentRefused
from hubgate.server.settings import Settings
from hubgate.server.web import flash
from hubgate.server.web.avatars import avatar_url
from hubgate.server.web.foreign_text import clean, said, shown
from hubgate.server.web.local_path import going_on
from hubgate.server.web.pages.errors import advice_for
from hubgate.server.web.static import asset_url

THEME_COOKIE = "theme"
LONGEST_WAY_BACK = 2000
THEMES = ("system", "light", "dark")
NO_ERRORS: Mapping[str, str] = {}


class _Compiled(BytecodeCache):
    """What a template was compiled to, once for a process however many hubs it opens."""

    def __init__(self) -> None:
        self._codes: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if code := self._codes.get(bucket.key):
            bucket.bytecode_from_string(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._codes[bucket.key] = bucket.bytecode_to_string()


_COMPILED = _Compiled()


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
            # Templates change with the code, at a restart: no look at the files for every page.
            auto_reload=False,
            bytecode_cache=_COMPILED,
        )
        self._templates.globals.update(
            asset=asset_url,
            version=__version__,
            base_url=settings.base_url,
            hub_host=urlsplit(settings.base_url).netloc,
            themes=THEMES,
            signup=settings.signup,
            avatar=avatar_url,
        )
        self._templates.filters.update(
            shown=shown,
            clean=clean,
            said=said,
            iso=iso,
            moment=moment,
            size=size,
            going_on=going_on,
            breakable=breakable,
        )

    def page(
        self,
        request: HubRequest,
        template: str,
        status: int | None = None,
        errors: Mapping[str, str] = NO_ERRORS,
        **values: Any,
    ) -> Response:
        """`errors` are sentences by field of a form that has to be mended. Without a `status` they make it 422."""
        csrf_value, new_cookie = self._csrf.field_for(request)
        done = flash.read(request, self._csrf.secret, secure=self.settings.secure)
        html = self._templates.get_template(template).render(
            values,
            errors=errors,
            done=done,
            me=caller_of(request).person,
            csrf_name=FIELD,
            csrf_value=csrf_value,
            theme=chosen_theme(request),
            here=_here(request),
            secret_address=request.secret_address,
        )
        response = HTMLResponse(html, status or (422 if errors else 200))
        if done:
            flash.forget(response, secure=self.settings.secure)
        if new_cookie is not None and _has_all_its_cookies(request):
            self._csrf.set_visitor_cookie(response, new_cookie)
        return response

    def mend(self, request: HubRequest, template: str, error: HubError, at: str, **values: Any) -> Response:
        """The form again, with what is wrong: at its fields, or at the field `at` for all that names none."""
        errors = error.fields if isinstance(error, FieldErrors) else {at: error.message}
        response = self.page(request, template, error.status, errors, **values)
        if isinstance(error, TooManyRequests):
            response.headers["retry-after"] = str(error.retry_after)
        return response

    def see(self, path: str, done: str = "") -> Response:
        """After a form: go there, and say what was done."""
        response = RedirectResponse(path, 303)
        if done:
            flash.leave(response, self._csrf.secret, done, secure=self.settings.secure)
        return response

    def error(self, request: HubRequest, error: HubError) -> Response:
        if error.code == "RepoNotFound":
            # One that a visitor may not know of, and one that does not exist: the same page, signed in or not.
            error = NotFound(NOTHING_HERE)
        if isinstance(error, Unauthorized) and request.method in ("GET", "HEAD"):
            return RedirectResponse(going_on("/login", _here(request)), 303)
        advice = advice_for(error)
        return self.page(
            request,
            "error.html",
            error.status,
            title=advice.title,
            code=error.status,
            # It may hold a name that somebody else chose.
            cause=clean(error.message),
            cure=advice.cure,
            request_id=request.request_id,
            for_its_maker=_for_its_maker(request, error),
        )


def _for_its_maker(request: HubRequest, error: HubError) -> tuple[str, str, str] | None:
    """For whoever built the app: words, then a link to where they see what is wrong with it, and what it says."""
    if not isinstance(error, (StoppedHere, DocumentRefused)):
        return None
    if request.is_explained:
        return "", f"/oauth/explain/{request.request_id}", "See what it sent"
    if error.client_id.startswith(("https://", "http://")):
        return "", f"/docs/cimd?{urlencode({'url': error.client_id})}", "Check its document"
    known = error.client_id and error.code != "invalid_client"
    return "See its errors under" if known else "Check client_id under", "/settings/applications", "Apps you build"


def _has_all_its_cookies(request: HubRequest) -> bool:
    """A POST from another site comes without our Lax cookie; a new one would break the forms this browser has open."""
    from_here = request.headers.get("sec-fetch-site") in ("same-origin", "none")
    return request.method in ("GET", "HEAD") or from_here


def chosen_theme(request: HubRequest) -> str:
    # Never a secret, so its name is the same on http and https.
    theme = read_cookie(request, THEME_COOKIE, secure=False)
    return theme if theme in THEMES else THEMES[0]


def _here(request: HubRequest) -> str:
    """This page's address, to come back to; home where the page is the answer to a form, or its address too long."""
    if request.method not in ("GET", "HEAD"):
        return "/"
    path = request.scope["raw_path"].decode("latin-1")
    query = request.scope["query_string"].decode("latin-1")
    here = f"{path}?{query}" if query else path
    return here if len(here) <= LONGEST_WAY_BACK else "/"


def moment(when: int, seconds: bool = False) -> str:
    """A time for people; `iso` is the one for machines beside it."""
    return iso(when)[: 19 if seconds else 16].replace("T", " ") + " UTC"


def size(count: int) -> str:
    """Bytes for people, by thousands as disks and networks count."""
    amount, units = float(count), ["bytes", "kB", "MB", "GB", "TB", "PB"]
    while amount >= 999.5 and len(units) > 1:
        amount, units = amount / 1000, units[1:]
    digits = 0 if amount >= 99.95 or units[0] == "bytes" else 1
    return f"{amount:.{digits}f} {'byte' if count == 1 else units[0]}"


def breakable(address: str) -> Markup:
    """Where it does not fit, it breaks between its parts."""
    parts = re.split(r"(?<=[/:])(?![/:])", address)
    return Markup("<wbr>").join(parts)
