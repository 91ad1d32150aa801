"""Signing in and out."""

from starlette.responses import Response

from hubgate.server.access.caller import caller_of, visitor_of
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.sessions import browsers
from hubgate.server.accounts.signin import WrongPassword, sign_in
from hubgate.server.edge.routes import Route, public
from hubgate.server.errors import Forbidden, TooManyRequests
from hubgate.server.http.request import HubRequest
from hubgate.server.oauth.context import OAuth
from hubgate.server.web import session_cookie
from hubgate.server.web.local_path import local_path
from hubgate.server.web.pages.entry.page import door
from hubgate.server.web.pages.oauth.request import pending_request
from hubgate.server.web.rendering import Pages

PATH = "/login"
_FORM = "doors/login.html"


def routes(pages: Pages, accounts: Accounts, oauth: OAuth) -> list[Route]:
    async def show(request: HubRequest) -> Response:
        query = request.query()
        next_page = local_path(query.get("next", ""))
        # An app may require a signed-in user to sign in again, or as another user.
        if caller_of(request).person is not None and not query.get("again"):
            return pages.redirect(next_page)
        asked = await pending_request(oauth, request, next_page)
        return pages.page(request, _FORM, next_page=next_page, username=asked.username, asking=asked)

    async def enter(request: HubRequest) -> Response:
        form, old = request.form_fields, caller_of(request).session
        next_page, username = local_path(form.get("next")), form.get("username")
        try:
            cookie = await sign_in(accounts, username, form.get("password"), visitor_of(request), old)
        except (WrongPassword, Forbidden, TooManyRequests) as error:
            asked = await pending_request(oauth, request, next_page)
            return pages.show_errors(
                request, _FORM, error, "form", next_page=next_page, username=username, asking=asked
            )
        response = pages.redirect(next_page)
        session_cookie.remember(response, pages.settings, cookie)
        return response

    async def leave(request: HubRequest) -> Response:
        session = caller_of(request).session
        if session is not None:
            await browsers.end(accounts, session.user_id, session.id)
        response = pages.redirect("/", "You are signed out.")
        session_cookie.forget(response, pages.settings)
        return response

    return [
        door("GET", PATH, public(show), "Sign in", leads_away=True),
        door("POST", PATH, public(enter), "Sign in", leads_away=True),
        door("POST", "/logout", public(leave), "Sign out", secret_address=False),
    ]
