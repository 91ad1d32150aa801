"""Signing in and out, and setting a new password through a mailed link."""

from hubgate.server.access.caller import caller_of, visitor_of
from hubgate.server.accounts import addresses, password_changes
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.links.model import Purpose
from hubgate.server.accounts.sessions import browser_sessions
from hubgate.server.accounts.signin import WrongPassword, sign_in
from hubgate.server.edge.routes import Route, public
from hubgate.server.errors import FieldErrors, Forbidden, TooManyRequests
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.oauth.context import OAuth
from hubgate.server.web import cookies
from hubgate.server.web.local_path import local_path
from hubgate.server.web.pages.entry.entry_route import NOTICE, entry_route
from hubgate.server.web.pages.oauth.pending_request import pending_request
from hubgate.server.web.rendering import Pages

LOGIN, RESET = "/login", "/reset"
RESET_SENT = "If that address has an account, a link is on its way."
_LOGIN_FORM, _RESET_FORM, _PASSWORD_FORM = "entry/login.html", "entry/reset.html", "entry/new_password.html"


def routes(pages: Pages, accounts: Accounts, oauth: OAuth) -> list[Route]:
    return [*_login_routes(pages, accounts, oauth), *_reset_routes(pages, accounts)]


def _login_routes(pages: Pages, accounts: Accounts, oauth: OAuth) -> list[Route]:
    async def show(request: HubRequest) -> Response:
        query = request.query()
        next_page = local_path(query.get("next", ""))
        # An app may require a signed-in user to sign in again, or as another user.
        if caller_of(request).person is not None and not query.get("again"):
            return pages.redirect(next_page)
        app_request = await pending_request(oauth, request, next_page)
        return pages.page(
            request, _LOGIN_FORM, next_page=next_page, username=app_request.username, app_request=app_request
        )

    async def log_in(request: HubRequest) -> Response:
        form, old = request.form_fields, caller_of(request).session
        next_page, username = local_path(form.get("next")), form.get("username")
        try:
            cookie = await sign_in(accounts, username, form.get("password"), visitor_of(request), old)
        except (WrongPassword, Forbidden, TooManyRequests) as error:
            app_request = await pending_request(oauth, request, next_page)
            return pages.show_errors(
                request, _LOGIN_FORM, error, "form", next_page=next_page, username=username, app_request=app_request
            )
        response = pages.redirect(next_page)
        cookies.set_session(response, pages.settings, cookie)
        return response

    async def log_out(request: HubRequest) -> Response:
        session = caller_of(request).session
        if session is not None:
            await browser_sessions.end(accounts, session.user_id, session.id)
        response = pages.redirect("/", "You are signed out.")
        cookies.clear_session(response, pages.settings)
        return response

    return [
        entry_route("GET", LOGIN, public(show), "Sign in", leaves_hub=True),
        entry_route("POST", LOGIN, public(log_in), "Sign in", leaves_hub=True),
        entry_route("POST", "/logout", public(log_out), "Sign out", secret_address=False),
    ]


def _reset_routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(request: HubRequest) -> Response:
        return pages.page(request, _RESET_FORM, email="")

    async def request_link(request: HubRequest) -> Response:
        email = request.form_fields.get("email").strip()
        try:
            await password_changes.request_reset(accounts, email)
        except (FieldErrors, TooManyRequests) as error:
            return pages.show_errors(request, _RESET_FORM, error, "email", email=email)
        return pages.page(request, NOTICE, title="Reset your password", lines=[RESET_SENT], link=("/login", "Sign in"))

    async def show_link(request: HubRequest) -> Response:
        _, user = await addresses.find_link(accounts, request.param("secret"), Purpose.RESET)
        return pages.page(request, _PASSWORD_FORM, user=user)

    async def set_password(request: HubRequest) -> Response:
        secret, new = request.param("secret"), request.form_fields.get("password")
        try:
            await password_changes.reset(accounts, secret, new, visitor_of(request))
        except FieldErrors as error:
            _, user = await addresses.find_link(accounts, secret, Purpose.RESET)
            return pages.show_errors(request, _PASSWORD_FORM, error, "password", user=user)
        return pages.redirect("/login", "Your password was changed. Sign in with it.")

    return [
        entry_route("GET", RESET, public(show), "Request a new password", secret_address=False),
        entry_route("POST", RESET, public(request_link), "Mail a link that sets a new password", secret_address=False),
        entry_route("GET", RESET + "/{secret}", public(show_link), "Set a new password"),
        entry_route("POST", RESET + "/{secret}", public(set_password), "Set a new password"),
    ]
