"""`/api/settings/tokens`: a user's personal tokens, managed with one of them.

A token can list and revoke tokens, so that a script can clean up after itself. A token cannot create or refresh one: a
stolen token would outlive its revocation.
"""

from typing import Annotated

import msgspec
from starlette.responses import Response

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
from hubgate.server.http.surface import Surface
from hubgate.server.paging import parse_page
from hubgate.server.web.api.answers import NO_TOKEN
from hubgate.server.web.api.listing import PAGING, listed

PATH = "/api/settings/tokens"
_READ, _WRITE, _SIGNED_IN = Action.ACCOUNT_READ_SETTINGS, Action.ACCOUNT_WRITE_SETTINGS, Action.ACCOUNT_CREDENTIALS
_ONE_OF_YOURS = {**NO_TOKEN, 404: ("Token not found.", None)}
_NEVER = {**NO_TOKEN, 403: ("Always: no token can be used for this. Use the hub's pages.", None)}


class TokenChanges(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]


def routes(accounts: Accounts) -> list[Route]:
    async def every(request: HubRequest, caller: Caller) -> Response:
        found = await personal.page_of_user(accounts, caller.user.id, parse_page(request.query(), personal.CURSOR))
        return listed(request, accounts.base_url, found, token_info)

    async def one(request: HubRequest, caller: Caller) -> Response:
        return JsonResponse(token_info(await personal.get(accounts, caller.user.id, request.param("id"))))

    async def change(request: HubRequest, caller: Caller) -> Response:
        user = caller.user
        changes = await request.read_json(TokenChanges)
        return JsonResponse(token_info(await personal.rename(accounts, user.id, request.param("id"), changes.name)))

    async def revoke(request: HubRequest, caller: Caller) -> Response:
        await personal.revoke(accounts, caller.user.id, request.param("id"))
        return Response(status_code=204)

    async def refuse(_: HubRequest, __: Caller) -> Response:
        # The rule rejects every request before this: it requires a session, and the API accepts none.
        raise Forbidden("Create and refresh tokens on the hub's pages.")

    api, at_one, cap = Surface.API, f"{PATH}/{{id}}", 4 * KIB
    listing = {200: ("Newest first, without their secrets.", list[TokenInfo]), **NO_TOKEN}
    shown = {200: ("The token, without its secret.", TokenInfo), **_ONE_OF_YOURS}
    revoked = {204: ("The token no longer works.", None), **_ONE_OF_YOURS}
    return [
        Route("GET", PATH, own(_READ, every), api, "Your personal tokens", query=PAGING, answers=listing),
        Route("POST", PATH, own(_SIGNED_IN, refuse), api, "Create a token: only on the hub's pages", answers=_NEVER),
        Route("GET", at_one, own(_READ, one), api, "One personal token", answers=shown),
        Route("PATCH", at_one, own(_WRITE, change), api, "Rename", body=TokenChanges, answers=shown, body_cap=cap),
        Route("DELETE", at_one, own(_WRITE, revoke), api, "Revoke", answers=revoked),
        Route(
            "POST",
            f"{at_one}/refresh",
            own(_SIGNED_IN, refuse),
            api,
            "Replace a token's secret: only on the hub's pages",
            answers=_NEVER,
        ),
    ]
