"""Renders templates as responses: autoescaped, with the visitor's theme and a CSRF field for forms."""

import contextlib
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jinja2
from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from hubgate import __version__
from hubgate.server.access.caller import caller_of
from hubgate.server.accounts.pictures.model import address_of
from hubgate.server.clock import iso
from hubgate.server.edge.edge import NOTHING_HERE
from hubgate.server.errors import FieldErrors, HubError, NotFound, TooManyRequests, Unauthorized
from hubgate.server.http.cookies import read_cookie
from hubgate.server.http.csrf import CSRF_FIELD, Csrf
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import HTMLResponse, RedirectResponse, Response
from hubgate.server.settings import Settings
from hubgate.server.web import cookies
from hubgate.server.web.avatars import avatar_url
from hubgate.server.web.local_path import continue_to
from hubgate.server.web.pages.docs.highlight import highlight
from hubgate.server.web.pages.errors import advice_for, developer_hint
from hubgate.server.web.static import asset_url
from hubgate.server.web.untrusted_text import clean, clean_lines, display_name, plain_text

THEME_COOKIE = "theme"
LONGEST_RETURN_ADDRESS = 2000
THEMES = ("system", "light", "dark")
NO_ERRORS: Mapping[str, str] = {}


class _CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates, stored beside their sources as Python does with modules. Without them, the first page of a
    process takes a third of a second.
    """

    def __init__(self, templates: Path) -> None:
        folder = templates / "__pycache__"
        with contextlib.suppress(OSError):
            folder.mkdir(exist_ok=True)
        # Jinja itself compares only the source and the version of Python.
        super().__init__(str(folder), f"%s-{__version__}-{jinja2.__version__}.cache")

    def dump_bytecode(self, bucket: Bucket) -> None:
        # The disk may be full, and an installation often belongs to another user.
        with contextlib.suppress(OSError):
            if not sys.dont_write_bytecode:
                super().dump_bytecode(bucket)


@cache
def _environment() -> Environment:
    """The compiled templates, once per process for all hubs in it."""
    folder = Path(__file__).with_name("templates")
    templates = Environment(
        loader=FileSystemLoader(folder),
        bytecode_cache=_CompiledTemplates(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Templates change only with the code, at a restart, so files are not checked for every page.
        auto_reload=False,
    )
    templates.globals.update(
        asset=asset_url, version=__version__, themes=THEMES, avatar=avatar_url, picture_address=address_of
    )
    templates.filters.update(
        display_name=display_name,
        clean=clean,
        clean_lines=clean_lines,
        iso=iso,
        format_time=format_time,
        format_size=format_size,
        continue_to=continue_to,
        breakable=breakable,
        breakable_email=breakable_email,
        plain_text=plain_text,
        highlighted=highlight,
    )
    return templates


class Pages:
    """Renders the hub's pages, redirects and error pages."""

    def __init__(self, settings: Settings, csrf: Csrf) -> None:
        self.settings = settings
        self._csrf = csrf
        self._templates = _environment()
        base_url = settings.base_url
        self._site = {"base_url": base_url, "hub_host": urlsplit(base_url).netloc, "signup": settings.signup}

    def page(
        self,
        request: HubRequest,
        template: str,
        status: int | None = None,
        errors: Mapping[str, str] = NO_ERRORS,
        **values: Any,
    ) -> Response:
        """Render a page. `errors` maps form fields to messages; with errors, `status` defaults to 422."""
        csrf_value, new_cookie = self._csrf.field_for(request)
        flash = cookies.read_flash(request, self._csrf.secret, secure=self.settings.secure)
        html = self._templates.get_template(template).render(
            self._site | values,
            errors=errors,
            flash=flash,
            me=caller_of(request).person,
            csrf_name=CSRF_FIELD,
            csrf_value=csrf_value,
            theme=chosen_theme(request),
            here=_return_address(request),
            secret_address=request.secret_address,
        )
        response = HTMLResponse(html, status or (422 if errors else 200))
        if flash:
            cookies.clear_flash(response, secure=self.settings.secure)
        if new_cookie is not None and _sends_lax_cookies(request):
            self._csrf.set_visitor_cookie(response, new_cookie)
        return response

    def show_errors(self, request: HubRequest, template: str, error: HubError, at: str, **values: Any) -> Response:
        """Show the form again with its errors: at their fields, or at the field `at` if the error names no field."""
        errors = error.fields if isinstance(error, FieldErrors) else {at: error.message}
        response = self.page(request, template, error.status, errors, **values)
        if isinstance(error, TooManyRequests):
            response.headers["retry-after"] = str(error.retry_after)
        return response

    def redirect(self, path: str, flash: str = "") -> Response:
        """Redirect after a form, with an optional message that the next page shows once."""
        response = RedirectResponse(path, 303)
        if flash:
            cookies.set_flash(response, self._csrf.secret, flash, secure=self.settings.secure)
        return response

    def error(self, request: HubRequest, error: HubError) -> Response:
        if error.code == "RepoNotFound":
            # A hidden repo and a missing repo get the same page, signed in or not.
            error = NotFound(NOTHING_HERE)
        if isinstance(error, Unauthorized) and request.method in ("GET", "HEAD"):
            return RedirectResponse(continue_to("/login", _return_address(request)), 303)
        advice = advice_for(error)
        return self.page(
            request,
            "error.html",
            error.status,
            title=advice.title,
            code=error.status,
            # The message may contain a name that another user chose.
            cause=clean(error.message),
            advice=advice.text,
            request_id=request.request_id,
            for_developer=developer_hint(request, error),
        )


def _sends_lax_cookies(request: HubRequest) -> bool:
    """Whether the browser sent our Lax cookie, if it has one. A POST from another site does not include it, and a new
    cookie would invalidate the forms that are open in this browser.
    """
    same_origin = request.headers.get("sec-fetch-site") in ("same-origin", "none")
    return request.method in ("GET", "HEAD") or same_origin


def chosen_theme(request: HubRequest) -> str:
    # The theme is not secret, so its cookie has the same name on http and https.
    theme = read_cookie(request, THEME_COOKIE, secure=False)
    return theme if theme in THEMES else THEMES[0]


def _return_address(request: HubRequest) -> str:
    """This page's address, to return to; `/` for responses to forms and for addresses that are too long."""
    if request.method not in ("GET", "HEAD"):
        return "/"
    path = request.scope["raw_path"].decode("latin-1")
    query = request.scope["query_string"].decode("latin-1")
    address = f"{path}?{query}" if query else path
    return address if len(address) <= LONGEST_RETURN_ADDRESS else "/"


def format_time(when: int, precision: str = "minutes") -> str:
    """Format a time for people; `iso` formats it for machines. A log of one page has only the clock."""
    day, clock = iso(when)[:19].split("T")
    match precision:
        case "date":
            return day
        case "clock":
            return clock
        case _:
            return f"{day} {clock if precision == 'seconds' else clock[:5]} UTC"


def format_size(count: int) -> str:
    """Format a number of bytes for people, in powers of 1000."""
    amount, units = float(count), ["bytes", "kB", "MB", "GB", "TB", "PB"]
    while amount >= 999.5 and len(units) > 1:
        amount, units = amount / 1000, units[1:]
    digits = 0 if amount >= 99.95 or units[0] == "bytes" else 1
    return f"{amount:.{digits}f} {'byte' if count == 1 else units[0]}"


def breakable(address: str) -> Markup:
    """Allow line breaks between the parts of an address."""
    parts = re.split(r"(?<=[/:])(?![/:])", address)
    return Markup("<wbr>").join(parts)


def breakable_email(text: str) -> Markup:
    """Allow line breaks between the parts of an e-mail address. Other text, such as a name, stays unchanged."""
    if "@" not in text:
        return escape(text)
    return Markup("<wbr>").join(re.split(r"(?=@)|(?<=[._+-])(?=\w)", text))
