"""Access tokens: the user's own, and those that organizations obtained for the user.

A secret is only in the response to the form that created it.
"""

from collections.abc import Mapping
from typing import Any

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller
from hubgate.server.accounts import single_use_forms
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import User
from hubgate.server.accounts.roles import TokenRole
from hubgate.server.accounts.single_use_forms import AlreadyUsed
from hubgate.server.accounts.tokens import personal
from hubgate.server.accounts.tokens.model import LIFETIMES, NEVER, ON_DATE, parse_expiry
from hubgate.server.edge.routes import KIB, Handler, Route, own
from hubgate.server.errors import FieldErrors
from hubgate.server.http.forms import Fields
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.exchange import issued_tokens
from hubgate.server.scopes import parse_scopes
from hubgate.server.web.pages.listing import ListQuery, list_page
from hubgate.server.web.rendering import NO_ERRORS, Pages

PATH = "/settings/tokens"
_READ, _WRITE, _CREDENTIALS = Action.ACCOUNT_READ_SETTINGS, Action.ACCOUNT_WRITE_SETTINGS, Action.ACCOUNT_CREDENTIALS
EXPIRY_CHOICES = (
    *((days, f"in {days} days") for days in LIFETIMES),
    (ON_DATE, "on a date"),
    (NEVER, "never"),
)
_ROLES = (
    (TokenRole.READ.value, "read: see everything you can see"),
    (TokenRole.WRITE.value, "write: do everything you can do"),
)


def routes(pages: Pages, accounts: Accounts, oauth: OAuth) -> list[Route]:
    return [*_list_routes(pages, accounts, oauth), *_token_routes(pages, accounts)]


def _list_routes(pages: Pages, accounts: Accounts, oauth: OAuth) -> list[Route]:
    async def show(request: HubRequest, user: User, errors: Mapping[str, str] = NO_ERRORS, **values: Any) -> Response:
        shown = list_page(request, await personal.of_user(accounts, user.id))
        fields = {"name": "", "role": _ROLES[0][0], "expires": NEVER, "expires_on": ""}
        values = {**fields, "secret": "", "created": None, "already_used": "", **values}
        return pages.page(
            request,
            "settings/tokens.html",
            errors=errors,
            section=PATH,
            shown=shown,
            roles=_ROLES,
            expiry_choices=EXPIRY_CHOICES,
            now=accounts.clock(),
            nonce=single_use_forms.new_nonce(accounts, user),
            **await issued(request, user),
            **values,
        )

    async def issued(request: HubRequest, user: User) -> dict[str, Any]:
        # The response to a POST may show a new secret, once only: an invalid cursor must not make it fail.
        query = ListQuery(request.query() if request.method != "POST" else {}, PATH, "issued")
        found = await issued_tokens.of_member(oauth, user.id, query.page(issued_tokens.CURSOR))
        tokens = [(token, parse_scopes(token.scopes)) for token in found.items]
        return {"issued": tokens, "more": query.template_values(found.next_cursor)}

    async def list_all(request: HubRequest, caller: Caller) -> Response:
        return await show(request, caller.user)

    async def create(request: HubRequest, caller: Caller) -> Response:
        user, form = caller.user, request.form_fields
        try:
            nonce = single_use_forms.check_nonce(accounts, user, form.get(single_use_forms.FIELD))
            name, role = form.get("name"), _role(form)
            expires_at = parse_expiry(form.get("expires", NEVER), form.get("expires_on"), accounts.clock())
            secret, created = await personal.create(
                accounts, user, name, role, request.client_ip, nonce, expires_at=expires_at
            )
        except FieldErrors as error:
            sent = {field: form.get(field) for field in ("name", "role", "expires", "expires_on")}
            return await show(request, user, error.fields, **sent)
        except AlreadyUsed as error:
            return await show(request, user, already_used=error.message)
        return await show(request, user, secret=secret, created=created)

    page = Surface.PAGE
    return [
        Route("GET", PATH, own(_READ, list_all), page, "Personal tokens"),
        Route("POST", PATH, own(_CREDENTIALS, create), page, "Create a token", body_cap=16 * KIB),
    ]


def _token_routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(
        request: HubRequest, user: User, template: str, errors: Mapping[str, str] = NO_ERRORS, **values: Any
    ) -> Response:
        token = await personal.get(accounts, user.id, request.param("id"))
        values = {"token": token, "name": token.name, "now": accounts.clock(), **values}
        return pages.page(request, f"settings/{template}", errors=errors, section=PATH, at=_at(token.id), **values)

    async def show_token(request: HubRequest, caller: Caller) -> Response:
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
        values = {"nonce": single_use_forms.new_nonce(accounts, user), "secret": "", "already_used": "", **values}
        return await show(request, user, "token_refresh.html", errors, **values)

    async def refresh_page(request: HubRequest, caller: Caller) -> Response:
        return await show_refresh(request, caller.user)

    async def refresh(request: HubRequest, caller: Caller) -> Response:
        user, submitted = caller.user, request.form_fields.get(single_use_forms.FIELD)
        try:
            nonce = single_use_forms.check_nonce(accounts, user, submitted)
            secret, _ = await personal.refresh(accounts, user, request.param("id"), request.client_ip, nonce)
        except FieldErrors as error:
            return await show_refresh(request, user, error.fields)
        except AlreadyUsed as error:
            return await show_refresh(request, user, already_used=error.message)
        return await show_refresh(request, user, secret=secret)

    async def revocation_page(request: HubRequest, caller: Caller) -> Response:
        return await show(request, caller.user, "token_revoke.html")

    async def revoke(request: HubRequest, caller: Caller) -> Response:
        user = caller.user
        token = await personal.get(accounts, user.id, request.param("id"))
        await personal.revoke(accounts, user.id, token.id)
        return pages.redirect(PATH, f"Revoked {token.name}.")

    def page(method: str, path: str, handler: Handler[Caller], action: Action, summary: str) -> Route:
        return Route(method, path, own(action, handler), Surface.PAGE, summary, body_cap=16 * KIB)

    at = _at("{id}")
    return [
        page("GET", at, show_token, _READ, "One personal token"),
        page("POST", at, rename, _WRITE, "Rename a token"),
        page("GET", f"{at}/refresh", refresh_page, _CREDENTIALS, "Confirm replacing a token's secret"),
        page("POST", f"{at}/refresh", refresh, _CREDENTIALS, "Replace a token's secret"),
        page("GET", f"{at}/revoke", revocation_page, _WRITE, "Confirm revoking a token"),
        page("POST", f"{at}/revoke", revoke, _WRITE, "Revoke a token"),
    ]


def _at(token_id: str) -> str:
    return f"{PATH}/{token_id}"


def _role(form: Fields) -> TokenRole:
    chosen = form.get("role")
    if chosen not in dict(_ROLES):
        raise FieldErrors({"role": "Choose read or write."})
    return TokenRole(chosen)
