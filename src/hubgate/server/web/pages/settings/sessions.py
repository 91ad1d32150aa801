"""Sessions: the signed-in browsers, and signing them out."""

import re

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.sessions import browser_sessions
from hubgate.server.edge.routes import KIB, Route, own
from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.web import cookies
from hubgate.server.web.pages.listing import list_page
from hubgate.server.web.rendering import Pages

PATH = "/settings/sessions"
_READ, _WRITE = Action.ACCOUNT_READ_SETTINGS, Action.ACCOUNT_WRITE_SETTINGS

# The first match wins: nearly every browser also claims to be others.
_BROWSERS = (
    ("Edge", r"Edg(?:e|A|iOS)?/"),
    ("Opera", r"OPR/|Opera"),
    ("Samsung Internet", r"SamsungBrowser/"),
    ("Firefox", r"Firefox/|FxiOS/"),
    ("Chrome", r"Chrome/|CriOS/"),
    ("Safari", r"Version/[\d.]+.*Safari/"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("ChromeOS", "CrOS"),
    ("macOS", "Macintosh|Mac OS X"),
    ("Linux", "Linux"),
)
_PRODUCT = re.compile(r"[A-Za-z][\w.-]{0,40}")


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(request: HubRequest, caller: Caller) -> Response:
        shown = list_page(request, await browser_sessions.of_user(accounts, caller.user.id))
        own_id = caller.session.id if caller.session else ""
        return pages.page(
            request,
            "settings/sessions.html",
            section=PATH,
            shown=shown,
            own_id=own_id,
            describe=describe_browser,
        )

    async def end(request: HubRequest, caller: Caller) -> Response:
        session_id = request.param("id")
        if not await browser_sessions.end(accounts, caller.user.id, session_id):
            raise NotFound("Session not found. It may have ended.")
        if caller.session is None or caller.session.id != session_id:
            return pages.redirect(PATH, "Session ended.")
        response = pages.redirect("/", "You are signed out.")
        cookies.clear_session(response, pages.settings)
        return response

    async def end_others(_: HubRequest, caller: Caller) -> Response:
        ended = await browser_sessions.end_others(accounts, caller.user.id, caller.session.id if caller.session else "")
        return pages.redirect(PATH, f"{ended} {'session' if ended == 1 else 'sessions'} ended.")

    page, cap = Surface.PAGE, 16 * KIB
    return [
        Route("GET", PATH, own(_READ, show), page, "Where you are signed in"),
        Route("POST", f"{PATH}/end-others", own(_WRITE, end_others), page, "Sign all other browsers out", body_cap=cap),
        Route("POST", f"{PATH}/{{id}}/end", own(_WRITE, end), page, "Sign a browser out", body_cap=cap),
    ]


def describe_browser(user_agent: str) -> str:
    """A browser in words, such as "Firefox on Linux": a guess for display."""
    browser, system = _first(_BROWSERS, user_agent), _first(_SYSTEMS, user_agent)
    if browser and system:
        return f"{browser} on {system}"
    if browser or system:
        return browser or f"A browser on {system}"
    product = _PRODUCT.match(user_agent)
    return product.group() if product else "Unknown browser"


def _first(known: tuple[tuple[str, str], ...], user_agent: str) -> str:
    return next((name for name, pattern in known if re.search(pattern, user_agent)), "")
