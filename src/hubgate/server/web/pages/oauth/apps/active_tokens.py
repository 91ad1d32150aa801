"""Active exchanged tokens: the list for a member, and revoking one token, a member's tokens, or a time span."""

from collections.abc import Mapping
from typing import Any

from hubgate.server.accounts import store as account_store
from hubgate.server.edge.routes import Route
from hubgate.server.errors import FieldErrors
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.exchange import issued_tokens
from hubgate.server.oauth.exchange.model import TokenFilter
from hubgate.server.scopes import parse_scopes
from hubgate.server.web.account_paths import user_named
from hubgate.server.web.exchanged_tokens import parse_filters
from hubgate.server.web.owner_routes import OwnerContext
from hubgate.server.web.pages.listing import ListQuery, return_address
from hubgate.server.web.pages.oauth.apps.exchange import PATH
from hubgate.server.web.pages.oauth.apps.page_context import AppPageContext
from hubgate.server.web.rendering import NO_ERRORS

_FILTERS = ("user", "since", "until")


def routes(base: AppPageContext) -> list[Route]:
    async def of_member(request: HubRequest, context: OwnerContext) -> Response:
        app, user = await base.app(request, context), await user_named(base.accounts, request.param("user"))
        at = context.address_of(app.client_id)
        list_query = ListQuery(request.query(), f"{at}/exchange/members/{user.name}")
        found = await issued_tokens.of_app(
            base.oauth, app, list_query.page(issued_tokens.CURSOR), TokenFilter(user_id=user.id)
        )
        tokens = [(token, parse_scopes(token.scopes)) for token in found.items]
        more = list_query.template_values(found.next_cursor)
        return base.show(request, context, "exchanged.html", app=app, at=at, user=user, tokens=tokens, **more)

    async def revoke_one(request: HubRequest, context: OwnerContext) -> Response:
        app = await base.app(request, context)
        await issued_tokens.revoke(base.oauth, app, TokenFilter(token_id=request.param("id")), context.actor)
        return base.pages.redirect(
            return_address(request, f"{context.address_of(app.client_id)}/exchange"), "Revoked the token."
        )

    async def confirm(request: HubRequest, context: OwnerContext) -> Response:
        """Ask for confirmation. The filters are in the query, from the form on the previous page."""
        app, given = await base.app(request, context), _filters(request.query())
        try:
            token_filter = await parse_filters(base.accounts, given)
        except FieldErrors as error:
            return await show(request, context, app, given, TokenFilter(), error.fields)
        return await show(request, context, app, given, token_filter)

    async def show(
        request: HubRequest,
        context: OwnerContext,
        app: App,
        given: Mapping[str, str],
        token_filter: TokenFilter,
        errors: Mapping[str, str] = NO_ERRORS,
    ) -> Response:
        values: dict[str, Any] = {name: given.get(name, "") for name in _FILTERS}
        if token_filter.user_id is not None:
            user = await account_store.user(base.oauth.db, token_filter.user_id)
            values["user"] = user.name if user else ""
        count = 0 if errors else await issued_tokens.count(base.oauth, app, token_filter)
        at = context.address_of(app.client_id)
        return base.show(
            request, context, "exchanged_revoke.html", errors, app=app, at=at, count=count, which=token_filter, **values
        )

    async def revoke(request: HubRequest, context: OwnerContext) -> Response:
        app, form = await base.app(request, context), request.form_fields
        given = _filters({name: form.get(name) for name in _FILTERS})
        try:
            token_filter = await parse_filters(base.accounts, given)
        except FieldErrors as error:
            return await show(request, context, app, given, TokenFilter(), error.fields)
        revoked = await issued_tokens.revoke(base.oauth, app, token_filter, context.actor)
        done = (
            f"Revoked {revoked:,} token{'' if revoked == 1 else 's'}." if revoked else "There were no tokens to revoke."
        )
        return base.pages.redirect(f"{context.address_of(app.client_id)}/exchange", done)

    route, one = base.organization_route, f"{PATH}/tokens/{{id}}/revoke"
    return [
        route("GET", f"{PATH}/members/{{user}}", of_member, "The active exchanged tokens for a member"),
        route("POST", one, revoke_one, "Revoke an exchanged token"),
        route("GET", f"{PATH}/revoke", confirm, "Confirm revoking exchanged tokens"),
        route("POST", f"{PATH}/revoke", revoke, "Revoke exchanged tokens"),
    ]


def _filters(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the filters that are set. Ignoring empty fields is safe here, unlike in the API: the page shows how many
    tokens match before they are revoked.
    """
    return {name: fields[name].strip() for name in _FILTERS if fields.get(name, "").strip()}
