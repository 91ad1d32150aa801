"""Password reset by mail."""

from starlette.responses import Response

from hubgate.server.access.caller import visitor_of
from hubgate.server.accounts import addresses, password_changes
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.links.model import Purpose
from hubgate.server.edge.routes import Route, public
from hubgate.server.errors import FieldErrors, TooManyRequests
from hubgate.server.http.request import HubRequest
from hubgate.server.web.pages.entry.page import NOTICE, door
from hubgate.server.web.rendering import Pages

PATH = "/reset"
SENT = "If that address has an account, a link is on its way."
_ASK, _SET = "doors/reset.html", "doors/new_password.html"


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(request: HubRequest) -> Response:
        return pages.page(request, _ASK, email="")

    async def ask(request: HubRequest) -> Response:
        email = request.form_fields.get("email").strip()
        try:
            await password_changes.ask_reset(accounts, email)
        except (FieldErrors, TooManyRequests) as error:
            return pages.show_errors(request, _ASK, error, "email", email=email)
        return pages.page(request, NOTICE, title="Reset your password", lines=[SENT], link=("/login", "Sign in"))

    async def show_link(request: HubRequest) -> Response:
        _, user = await addresses.look(accounts, request.param("secret"), Purpose.RESET)
        return pages.page(request, _SET, user=user)

    async def set_new(request: HubRequest) -> Response:
        secret, new = request.param("secret"), request.form_fields.get("password")
        try:
            await password_changes.reset(accounts, secret, new, visitor_of(request))
        except FieldErrors as error:
            _, user = await addresses.look(accounts, secret, Purpose.RESET)
            return pages.show_errors(request, _SET, error, "password", user=user)
        return pages.redirect("/login", "Your password is changed. Sign in with it.")

    return [
        door("GET", PATH, public(show), "Ask for a new password", secret_address=False),
        door("POST", PATH, public(ask), "Mail a link that sets a new password", secret_address=False),
        door("GET", PATH + "/{secret}", public(show_link), "Set a new password"),
        door("POST", PATH + "/{secret}", public(set_new), "Set a new password"),
    ]
