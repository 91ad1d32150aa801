"""Token exchange. Admins of an organization can try a dry run, and list and revoke the tokens that an app obtained.
Users can list the tokens that organizations obtained for them.
"""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.emails import LONGEST_EMAIL
from hubgate.server.edge.routes import KIB, Handler, Query, Route, own
from hubgate.server.errors import BadRequest
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.apps import management
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.exchange import issued_tokens
from hubgate.server.oauth.exchange.exchange import dry_run
from hubgate.server.oauth.exchange.model import Granted, TokenFilter
from hubgate.server.paging import parse_page
from hubgate.server.web.api.answers import NO_TOKEN
from hubgate.server.web.api.listing import PAGING, page_response
from hubgate.server.web.exchanged_tokens import ExchangedToken, describe, parse_filters, parse_ip
from hubgate.server.web.owner_routes import APPLICATIONS, OwnerContext

OWN = "/api/settings/exchanged-tokens"
_DRY_RUN, _TOKENS = "/{client_id}/exchange/dry-run", "/{client_id}/tokens"
_READ = Action.ACCOUNT_READ_SETTINGS
_USER = Query("user", "Only tokens for this member, by name.")
_SPAN = (
    Query("since", "Only tokens issued at or after a time such as 2026-09-21T14:13:20Z."),
    Query("until", "Only tokens issued at or before a time. 14:13 includes that whole minute."),
)
_FILTERS = (_USER, *_SPAN)
_NOT_FOUND = {
    **NO_TOKEN,
    403: ("The token is read-only or belongs to an app, or you are not an admin of the organization.", None),
    404: ("App, member or token not found.", None),
}
_INVALID = {422: ("A field is unknown or invalid; error says which.", None)}


class DryRunRequest(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    # The member's e-mail address.
    subject_token: Annotated[str, Meta(min_length=1, max_length=LONGEST_EMAIL)]
    # Default: all scopes that the app may have.
    scope: str | None = None
    # The address the app would call from. If it is missing, the allowed networks are not checked.
    ip: str | None = None


class DryRun(msgspec.Struct, rename="camel"):
    """The result of a dry run: `error` and `reason` if the exchange would be refused, otherwise the other fields."""

    granted: bool
    user: str | UnsetType = UNSET
    role: str | UnsetType = UNSET
    scopes: list[str] | UnsetType = UNSET
    expires_in: int | UnsetType = UNSET
    # The error code that the app would receive.
    error: str | UnsetType = UNSET
    # For admins; the app may receive less detail.
    reason: str | UnsetType = UNSET


class RevokedTokens(msgspec.Struct):
    revoked: int


class _Exchanges:
    def __init__(self, oauth: OAuth, accounts: Accounts) -> None:
        self._oauth, self._accounts = oauth, accounts

    async def simulate(self, request: HubRequest, context: OwnerContext) -> Response:
        given = await request.read_json(DryRunRequest)
        app = await self._app(request, context)
        verdict = await dry_run(
            self._oauth, app, given.subject_token, given.scope or None, parse_ip(given.ip) if given.ip else None
        )
        if isinstance(verdict, Granted):
            member = verdict.member
            granted = DryRun(True, member.user.name, member.role.label, list(verdict.scopes), app.exchange.duration)
            return JsonResponse(granted)
        return JsonResponse(DryRun(False, error=verdict.error.code or "invalid_request", reason=verdict.why))

    async def list_all(self, request: HubRequest, context: OwnerContext) -> Response:
        query = request.query()
        app, token_filter = await self._app(request, context), await parse_filters(self._accounts, query)
        found = await issued_tokens.of_app(self._oauth, app, parse_page(query, issued_tokens.CURSOR), token_filter)
        return page_response(request, self._oauth.base_url, found, describe)

    async def revoke(self, request: HubRequest, context: OwnerContext) -> Response:
        given = request.query()
        for name, value in given.items():
            # If a misspelt or empty filter were ignored, every token would be revoked.
            if name not in [known.name for known in _FILTERS]:
                raise BadRequest(
                    f"{name[:60]} is not a filter. Use user, since or until, or no filter to revoke all tokens."
                )
            if not value:
                raise BadRequest(f"{name} is empty. Give it a value or omit it.")
        app, token_filter = await self._app(request, context), await parse_filters(self._accounts, given)
        return JsonResponse(RevokedTokens(await issued_tokens.revoke(self._oauth, app, token_filter, context.actor)))

    async def revoke_one(self, request: HubRequest, context: OwnerContext) -> Response:
        app, token_filter = await self._app(request, context), TokenFilter(token_id=request.param("id"))
        await issued_tokens.revoke(self._oauth, app, token_filter, context.actor)
        return Response(status_code=204)

    async def _app(self, request: HubRequest, context: OwnerContext) -> App:
        return await management.get(self._oauth, context.owner, request.param("client_id"))


def routes(oauth: OAuth, accounts: Accounts) -> list[Route]:
    exchanges = _Exchanges(oauth, accounts)

    async def of_caller(request: HubRequest, caller: Caller) -> Response:
        found = await issued_tokens.of_member(oauth, caller.user.id, parse_page(request.query(), issued_tokens.CURSOR))
        return page_response(request, oauth.base_url, found, describe)

    def route(
        method: str, path: str, handler: Handler[OwnerContext], summary: str, answers: dict[int, Any], **more: Any
    ) -> Route:
        return APPLICATIONS.route(
            accounts, method, path, handler, Surface.API, summary, answers={**answers, **_NOT_FOUND}, **more
        )

    active_tokens = "Newest first; only active tokens."
    revoked = {200: ("The number of revoked tokens. They no longer work.", RevokedTokens), **_INVALID}
    return [
        route(
            "POST",
            _DRY_RUN,
            exchanges.simulate,
            "Simulate a token exchange",
            {200: ("The result. No token is issued, and nothing is counted or recorded.", DryRun), **_INVALID},
            body=DryRunRequest,
            body_cap=16 * KIB,
        ),
        route(
            "GET",
            _TOKENS,
            exchanges.list_all,
            "List the active exchanged tokens of an organization's app",
            {200: (active_tokens, list[ExchangedToken]), **_INVALID},
            query=(*_FILTERS, *PAGING),
        ),
        route(
            "DELETE",
            _TOKENS,
            exchanges.revoke,
            "Revoke exchanged tokens: all, or those of a member or a time span",
            {**revoked, 400: ("A filter is unknown or empty; nothing was revoked.", None)},
            query=_FILTERS,
        ),
        route(
            "DELETE",
            f"{_TOKENS}/{{id}}",
            exchanges.revoke_one,
            "Revoke one exchanged token",
            {204: ("The token no longer works.", None)},
        ),
        Route(
            "GET",
            OWN,
            own(_READ, of_caller),
            Surface.API,
            "List the active tokens that organizations obtained for you",
            query=PAGING,
            answers={200: (active_tokens, list[ExchangedToken]), **NO_TOKEN},
        ),
    ]
