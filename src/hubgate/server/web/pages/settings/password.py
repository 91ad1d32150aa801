"""Changing the password, with the current one; signs out every other browser and every app."""

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, visitor_of
from hubgate.server.accounts import password_changes
from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.routes import KIB, Route, own
from hubgate.server.errors import FieldErrors, TooManyRequests
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.web import cookies
from hubgate.server.web.rendering import Pages

PATH = "/settings/password"
_TEMPLATE = "settings/password.html"
_ACTION = Action.ACCOUNT_CREDENTIALS


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(request: HubRequest, _: Caller) -> Response:
        return pages.page(request, _TEMPLATE, section=PATH)

    async def change(request: HubRequest, caller: Caller) -> Response:
        user, form = caller.user, request.form_fields
        current, new = form.get("current_password"), form.get("new_password")
        try:
            cookie, revoked = await password_changes.change(
                accounts, user, current, new, visitor_of(request), caller.session
            )
        except (FieldErrors, TooManyRequests) as error:
            return pages.show_errors(request, _TEMPLATE, error, "current_password", section=PATH)
        summary = revoked.summary(other_sessions=True)
        response = pages.redirect(PATH, f"Password changed. Revoked: {summary}." if summary else "Password changed.")
        cookies.set_session(response, pages.settings, cookie)
        return response

    page = Surface.PAGE
    return [
        Route("GET", PATH, own(_ACTION, show), page, "Password"),
        Route("POST", PATH, own(_ACTION, change), page, "Change the password", body_cap=16 * KIB),
    ]
