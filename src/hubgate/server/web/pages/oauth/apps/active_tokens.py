"""Live exchanged tokens: those of a member, and revoking one, a member's, or those created in a time span."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from hubgate.server.accounts import store as account_store
from hubgate.server.edge.routes import Route
from hubgate.server.errors import FieldErrors
from hubgate.server.http.request import HubRequest
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.exchange import issued_tokens
from hubgate.server.oauth.exchange.model import TokenFilter
from hubgate.server.scopes import parse_scopes
from hubgate.server.web.exchanged_tokens import which_of
from hubgate.server.web.named import user_named
from hubgate.server.web.owner_routes import OwnerContext
from hubgate.server.web.pages.listing import ListQuery, return_address
from hubgate.server.web.pages.oauth.apps.exchange import PATH
from hubgate.server.web.pages.oauth.apps.frame import Frame
from hubgate.server.web.rendering import NO_ERRORS

_FILTERS = ("user", "since", "until")


def routes(frame: Frame) -> list[Route]:
    async def of_member(request: HubRequest, context: OwnerContext) -> Response:
        app, user = await frame.app(request, context), await user_named(frame.accounts, request.param("user"))
        at = context.at(app.client_id)
        asked = ListQuery(request.query(), f"{at}/exchange/members/{user.name}")
        found = await issued_tokens.of_app(
            frame.oauth, app, asked.page(issued_tokens.CURSOR), TokenFilter(user_id=user.id)
        )
        tokens = [(token, parse_scopes(token.scopes)) for token in found.items]
        more = asked.shown(found.next_cursor)
        return frame.show(request, context, "exchanged.html", app=app, at=at, user=user, tokens=tokens, **more)

    async def revoke_one(request: HubRequest, context: OwnerContext) -> Response:
        app = await frame.app(request, context)
        await issued_tokens.revoke(frame.oauth, app, TokenFilter(token_id=request.param("id")), context.actor)
        return frame.pages.redirect(
            return_address(request, f"{context.at(app.client_id)}/exchange"), "Revoked the token."
        )

    async def ask(request: HubRequest, context: OwnerContext) -> Response:
        """Ask for confirmation. The filters are in the query, written by the form that leads here."""
        app, given = await frame.app(request, context), _filters(request.query())
        try:
            which = await which_of(frame.accounts, given)
        except FieldErrors as error:
            return await show(request, context, app, given, TokenFilter(), error.fields)
        return await show(request, context, app, given, which)

    async def show(
        request: HubRequest,
        context: OwnerContext,
        app: App,
        given: Mapping[str, str],
        which: TokenFilter,
        errors: Mapping[str, str] = NO_ERRORS,
    ) -> Response:
        values: dict[str, Any] = {name: given.get(name, "") for name in _FILTERS}
        if which.user_id is not None:
            user = await account_store.user(frame.oauth.db, which.user_id)
            values["user"] = user.name if user else ""
        count = 0 if errors else await issued_tokens.count(frame.oauth, app, which)
        at = context.at(app.client_id)
        return frame.show(
            request, context, "exchanged_revoke.html", errors, app=app, at=at, count=count, which=which, **values
        )

    async def revoke(request: HubRequest, context: OwnerContext) -> Response:
        app, form = await frame.app(request, context), request.form_fields
        given = _filters({name: form.get(name) for name in _FILTERS})
        try:
            which = await which_of(frame.accounts, given)
        except FieldErrors as error:
            return await show(request, context, app, given, TokenFilter(), error.fields)
        revoked = await issued_tokens.revoke(frame.oauth, app, which, context.actor)
        done = f"Revoked {revoked:,} token{'' if revoked == 1 else 's'}." if revoked else "Nothing was left to revoke."
        return frame.pages.redirect(f"{context.at(app.client_id)}/exchange", done)

    route, one = frame.organization_route, f"{PATH}/tokens/{{id}}/revoke"
    return [
        route("GET", f"{PATH}/members/{{user}}", of_member, "The live exchanged tokens for a member"),
        route("POST", one, revoke_one, "Revoke an exchanged token"),
        route("GET", f"{PATH}/revoke", ask, "What revoking exchanged tokens means"),
        route("POST", f"{PATH}/revoke", revoke, "Revoke exchanged tokens"),
    ]


def _filters(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the filters that are set: an empty field does not limit. The page shows the number of tokens first."""
    return {name: fields[name].strip() for name in _FILTERS if fields.get(name, "").strip()}
