"""The set-up link: a join form for the first operator. Of concurrent requests, one wins."""

from starlette.responses import Response

from hubgate.server.access.caller import caller_of, visitor_of
from hubgate.server.accounts import signup
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.signin import admit
from hubgate.server.edge.routes import Route, public
from hubgate.server.errors import FieldErrors
from hubgate.server.http.request import HubRequest
from hubgate.server.web import session_cookie
from hubgate.server.web.pages.entry.join import FORM, Given
from hubgate.server.web.pages.entry.page import door
from hubgate.server.web.rendering import Pages


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(request: HubRequest) -> Response:
        secret = request.param("secret")
        await signup.require_setup(accounts, secret)
        return pages.page(request, FORM, action=f"/setup/{secret}", given=Given(), opened=None)

    async def create(request: HubRequest) -> Response:
        secret, given = request.param("secret"), Given.of(request.form_fields)
        await signup.require_setup(accounts, secret)
        try:
            password = request.form_fields.get("password")
            candidate = await signup.check_candidate(accounts, given.username, given.email, password)
            operator = await signup.create_first_operator(accounts, candidate)
        except FieldErrors as error:
            return pages.show_errors(
                request, FORM, error, "username", action=f"/setup/{secret}", given=given, opened=None
            )
        cookie = await admit(accounts, operator, visitor_of(request), caller_of(request).session)
        response = pages.redirect("/", "This hub is set up, and you operate it.")
        session_cookie.remember(response, pages.settings, cookie)
        return response

    return [
        door("GET", "/setup/{secret}", public(show), "Set the hub up"),
        door("POST", "/setup/{secret}", public(create), "Make the first operator"),
    ]
