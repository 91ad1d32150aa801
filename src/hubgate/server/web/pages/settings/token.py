"""One access token: renaming, replacing its secret, revoking."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller
from hubgate.server.accounts import single_use_forms
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import User
from hubgate.server.accounts.single_use_forms import AlreadyUsed
from hubgate.server.accounts.tokens import personal
from hubgate.server.edge.routes import KIB, Handler, Route, own
from hubgate.server.errors import FieldErrors
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.web.pages.settings.tokens import PATH as LIST
from hubgate.server.web.rendering import NO_ERRORS, Pages

_READ, _WRITE, _CREDENTIALS = Action.ACCOUNT_READ_SETTINGS, Action.ACCOUNT_WRITE_SETTINGS, Action.ACCOUNT_CREDENTIALS


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(
        request: HubRequest, user: User, template: str, errors: Mapping[str, str] = NO_ERRORS, **values: Any
    ) -> Response:
        token = await personal.get(accounts, user.id, request.param("id"))
        values = {"token": token, "name": token.name, **values}
        return pages.page(request, f"settings/{template}", errors=errors, section=LIST, here_at=_at(token.id), **values)

    async def one(request: HubRequest, caller: Caller) -> Response:
        return await show(request, caller.user, "token.html")

    async def rename(request: HubRequest, caller: Caller) -> Response:
        user, name = caller.user, request.form_fields.get("name")
        try:
            token = await personal.rename(accounts, user.id, request.param("id"), name)
        except FieldErrors as error:
            return await show(request, user, "token.html", error.fields, name=name)
        return pages.redirect(_at(token.id), "Token renamed.")

    async def show_refresh(
        request: HubRequest, user: User, errors: Mapping[str, str] = NO_ERRORS, **values: str
    ) -> Response:
        values = {"once": single_use_forms.number_for(accounts, user), "secret": "", "already": "", **values}
        return await show(request, user, "token_refresh.html", errors, **values)

    async def ask_refresh(request: HubRequest, caller: Caller) -> Response:
        return await show_refresh(request, caller.user)

    async def refresh(request: HubRequest, caller: Caller) -> Response:
        user, given = caller.user, request.form_fields.get(single_use_forms.FIELD)
        try:
            use = single_use_forms.check_number(accounts, user, given)
            secret, _ = await personal.refresh(accounts, user, request.param("id"), request.client_ip, use)
        except FieldErrors as error:
            return await show_refresh(request, user, error.fields)
        except AlreadyUsed as error:
            return await show_refresh(request, user, already=error.message)
        return await show_refresh(request, user, secret=secret)

    async def ask_revoke(request: HubRequest, caller: Caller) -> Response:
        return await show(request, caller.user, "token_revoke.html")

    async def revoke(request: HubRequest, caller: Caller) -> Response:
        user = caller.user
        token = await personal.get(accounts, user.id, request.param("id"))
        await personal.revoke(accounts, user.id, token.id)
        return pages.redirect(LIST, f"{token.name} is revoked.")

    def page(method: str, path: str, handler: Handler[Caller], action: Action, summary: str) -> Route:
        return Route(method, path, own(action, handler), Surface.PAGE, summary, body_cap=16 * KIB)

    at = _at("{id}")
    return [
        page("GET", at, one, _READ, "One personal token"),
        page("POST", at, rename, _WRITE, "Rename a token"),
        page("GET", f"{at}/refresh", ask_refresh, _CREDENTIALS, "What replacing a token's secret means"),
        page("POST", f"{at}/refresh", refresh, _CREDENTIALS, "Replace a token's secret"),
        page("GET", f"{at}/revoke", ask_revoke, _WRITE, "What revoking a token means"),
        page("POST", f"{at}/revoke", revoke, _WRITE, "Revoke a token"),
    ]


def _at(token_id: str) -> str:
    return f"{LIST}/{token_id}"
