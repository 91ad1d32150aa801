"""`/api/settings/tokens`: a user's personal tokens, managed with one of them.

A token can list and revoke tokens, so that a script can clean up after itself. A token cannot create or refresh tokens:
a thief could otherwise replace a stolen token before it is revoked.
"""

from typing import Annotated

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.tokens import personal
from hubgate.server.accounts.tokens.model import LONGEST_NAME
from hubgate.server.accounts.tokens.wire import TokenInfo, token_info
from hubgate.server.edge.routes import KIB, Route, own
from hubgate.server.errors import Forbidden
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.paging import parse_page
from hubgate.server.web.api.answers import NO_TOKEN
from hubgate.server.web.api.listing import PAGING, page_response

PATH = "/api/settings/tokens"
_READ, _WRITE, _CREDENTIALS = Action.ACCOUNT_READ_SETTINGS, Action.ACCOUNT_WRITE_SETTINGS, Action.ACCOUNT_CREDENTIALS
_NOT_FOUND = {**NO_TOKEN, 404: ("Token not found.", None)}
_PAGES_ONLY = {**NO_TOKEN, 403: ("A token can never be used for this. Use the hub's pages.", None)}


class TokenChanges(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]


def routes(accounts: Accounts) -> list[Route]:
    async def list_all(request: HubRequest, caller: Caller) -> Response:
        found = await personal.page_of_user(accounts, caller.user.id, parse_page(request.query(), personal.CURSOR))
        return page_response(request, accounts.base_url, found, token_info)

    async def get_one(request: HubRequest, caller: Caller) -> Response:
        return JsonResponse(token_info(await personal.get(accounts, caller.user.id, request.param("id"))))

    async def change(request: HubRequest, caller: Caller) -> Response:
        user = caller.user
        changes = await request.read_json(TokenChanges)
        return JsonResponse(token_info(await personal.rename(accounts, user.id, request.param("id"), changes.name)))

    async def revoke(request: HubRequest, caller: Caller) -> Response:
        await personal.revoke(accounts, caller.user.id, request.param("id"))
        return Response(status_code=204)

    async def refuse(_: HubRequest, __: Caller) -> Response:
        # Unreachable: the action requires a session, and the API does not accept sessions.
        raise Forbidden("Create and refresh tokens on the hub's pages.")

    api, at_one, cap = Surface.API, f"{PATH}/{{id}}", 4 * KIB
    listing = {200: ("Newest first, without their secrets.", list[TokenInfo]), **NO_TOKEN}
    shown = {200: ("The token, without its secret.", TokenInfo), **_NOT_FOUND}
    revoked = {204: ("The token no longer works.", None), **_NOT_FOUND}
    return [
        Route("GET", PATH, own(_READ, list_all), api, "Your personal tokens", query=PAGING, answers=listing),
        Route(
            "POST", PATH, own(_CREDENTIALS, refuse), api, "Create a token: only on the hub's pages", answers=_PAGES_ONLY
        ),
        Route("GET", at_one, own(_READ, get_one), api, "One personal token", answers=shown),
        Route(
            "PATCH", at_one, own(_WRITE, change), api, "Rename a token", body=TokenChanges, answers=shown, body_cap=cap
        ),
        Route("DELETE", at_one, own(_WRITE, revoke), api, "Revoke a token", answers=revoked),
        Route(
            "POST",
            f"{at_one}/refresh",
            own(_CREDENTIALS, refuse),
            api,
            "Replace a token's secret: only on the hub's pages",
            answers=_PAGES_ONLY,
        ),
    ]
