"""Links that confirm an e-mail address: that of a new account, or the new address of an existing one."""

from typing import Any

from hubgate.server.access.caller import caller_of, visitor_of
from hubgate.server.accounts import addresses
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.links.model import Purpose
from hubgate.server.edge.routes import Route, public
from hubgate.server.errors import FieldErrors, HubError, TooManyRequests
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.web.pages.entry.entry_route import entry_route
from hubgate.server.web.rendering import Pages

VERIFY, CHANGE = "/verify/{secret}", "/change-email/{secret}"
_PAGE = "entry/address.html"


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def page(request: HubRequest, purpose: Purpose, error: HubError | None = None) -> Response:
        """Show the form, with `error` if it was rejected."""
        secret, session = request.param("secret"), caller_of(request).session
        link, user = await addresses.find_link(accounts, secret, purpose)
        new_account = purpose is Purpose.VERIFY
        values: dict[str, Any] = {
            "title": "Confirm your e-mail" if new_account else "Change your e-mail",
            "button": "Confirm" if new_account else "Use this address",
            "link": link,
            "user": user,
            "own": error is None and session is not None and session.user_id == user.id,
            "has_password": await addresses.has_password(accounts, user),
            # Only for new accounts: the new address of an existing account may be mistyped.
            "reset": f"/verify/{secret}/reset" if new_account else "",
        }
        return (
            pages.show_errors(request, _PAGE, error, "password", **values)
            if error
            else pages.page(request, _PAGE, **values)
        )

    async def show_verify(request: HubRequest) -> Response:
        return await page(request, Purpose.VERIFY)

    async def verify(request: HubRequest) -> Response:
        session, password = caller_of(request).session, request.form_fields.get("password")
        try:
            await addresses.confirm(accounts, request.param("secret"), session, password, visitor_of(request))
        except (FieldErrors, TooManyRequests) as error:
            return await page(request, Purpose.VERIFY, error)
        return pages.redirect("/", "Your e-mail address is confirmed.")

    async def redirect_to_reset(request: HubRequest) -> Response:
        return pages.redirect(f"/reset/{await addresses.exchange_for_reset(accounts, request.param('secret'))}")

    async def show_change(request: HubRequest) -> Response:
        return await page(request, Purpose.CHANGE_EMAIL)

    async def change(request: HubRequest) -> Response:
        session, password = caller_of(request).session, request.form_fields.get("password")
        try:
            await addresses.change(accounts, request.param("secret"), session, password, visitor_of(request))
        except (FieldErrors, TooManyRequests) as error:
            return await page(request, Purpose.CHANGE_EMAIL, error)
        return pages.redirect("/", "Your e-mail address was changed.")

    return [
        entry_route("GET", VERIFY, public(show_verify), "Confirm an e-mail address"),
        entry_route("POST", VERIFY, public(verify), "Confirm an e-mail address"),
        entry_route("POST", VERIFY + "/reset", public(redirect_to_reset), "Set a new password instead of confirming"),
        entry_route("GET", CHANGE, public(show_change), "Change an e-mail address"),
        entry_route("POST", CHANGE, public(change), "Change an e-mail address"),
    ]
