"""The links that prove an e-mail address: a new account's, and the one an account moves to."""

from starlette.responses import Response

from hubgate.server.accounts import addresses
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.links.model import Purpose
from hubgate.server.edge.routes import Route, public
from hubgate.server.http.request import HubRequest
from hubgate.server.web.pages.doors.door import door
from hubgate.server.web.rendering import Pages

_ASK = "doors/address.html"


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show_verify(request: HubRequest) -> Response:
        link, user = await addresses.look(accounts, request.param("secret"), Purpose.VERIFY)
        return pages.page(request, _ASK, title="Confirm your e-mail", button="Confirm", link=link, user=user)

    async def verify(request: HubRequest) -> Response:
        await addresses.confirm(accounts, request.param("secret"))
        return pages.see("/", "Your e-mail address is confirmed.")

    async def show_change(request: HubRequest) -> Response:
        link, user = await addresses.look(accounts, request.param("secret"), Purpose.CHANGE_EMAIL)
        return pages.page(request, _ASK, title="Change your e-mail", button="Use this address", link=link, user=user)

    async def change(request: HubRequest) -> Response:
        await addresses.change(accounts, request.param("secret"))
        return pages.see("/", "Your e-mail address is changed.")

    return [
        door("GET", "/verify/{secret}", public(show_verify), "Confirm an e-mail address"),
        door("POST", "/verify/{secret}", public(verify), "Confirm an e-mail address"),
        door("GET", "/change-email/{secret}", public(show_change), "Move to another e-mail address"),
        door("POST", "/change-email/{secret}", public(change), "Move to another e-mail address"),
    ]
