"""Access tokens: the user's own, creating one, and those that organizations exchanged for the user.

The secret is only in the response to the form.
"""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller
from hubgate.server.accounts import single_use_forms
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import User
from hubgate.server.accounts.roles import TokenRole
from hubgate.server.accounts.single_use_forms import AlreadyUsed
from hubgate.server.accounts.tokens import personal
from hubgate.server.edge.routes import KIB, Route, own
from hubgate.server.errors import FieldErrors
from hubgate.server.http.forms import Fields
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.exchange import issued_tokens
from hubgate.server.scopes import parse_scopes
from hubgate.server.web.pages.listing import ListQuery
from hubgate.server.web.pages.settings.paged import shown_of
from hubgate.server.web.rendering import NO_ERRORS, Pages

PATH = "/settings/tokens"
_READ, _CREDENTIALS = Action.ACCOUNT_READ_SETTINGS, Action.ACCOUNT_CREDENTIALS
_ROLES = ((TokenRole.READ.value, "read: see all you can see"), (TokenRole.WRITE.value, "write: do all you can do"))


def routes(pages: Pages, accounts: Accounts, oauth: OAuth) -> list[Route]:
    async def show(request: HubRequest, user: User, errors: Mapping[str, str] = NO_ERRORS, **values: Any) -> Response:
        shown = shown_of(request, await personal.of_user(accounts, user.id))
        values = {"name": "", "role": _ROLES[0][0], "secret": "", "made": None, "already": "", **values}
        return pages.page(
            request,
            "settings/tokens.html",
            errors=errors,
            section=PATH,
            shown=shown,
            roles=_ROLES,
            once=single_use_forms.number_for(accounts, user),
            **await issued(request, user),
            **values,
        )

    async def issued(request: HubRequest, user: User) -> dict[str, Any]:
        # A new secret is shown only once, so an invalid cursor must not fail that response.
        asked = ListQuery(request.query() if request.method != "POST" else {}, PATH, "issued")
        found = await issued_tokens.of_member(oauth, user.id, asked.page(issued_tokens.CURSOR))
        tokens = [(token, parse_scopes(token.scopes)) for token in found.items]
        return {"issued": tokens, "more": asked.shown(found.next_cursor)}

    async def every(request: HubRequest, caller: Caller) -> Response:
        return await show(request, caller.user)

    async def create(request: HubRequest, caller: Caller) -> Response:
        user, form = caller.user, request.form_fields
        try:
            use = single_use_forms.check_number(accounts, user, form.get(single_use_forms.FIELD))
            name, role = form.get("name"), _role(form)
            secret, created = await personal.create(accounts, user, name, role, request.client_ip, use)
        except FieldErrors as error:
            return await show(request, user, error.fields, name=form.get("name"), role=form.get("role"))
        except AlreadyUsed as error:
            return await show(request, user, already=error.message)
        return await show(request, user, secret=secret, made=created)

    page = Surface.PAGE
    return [
        Route("GET", PATH, own(_READ, every), page, "Personal tokens"),
        Route("POST", PATH, own(_CREDENTIALS, create), page, "Make a token", body_cap=16 * KIB),
    ]


def _role(form: Fields) -> TokenRole:
    try:
        return TokenRole(form.get("role"))
    except ValueError:
        raise FieldErrors({"role": "Choose read or write."}) from None
