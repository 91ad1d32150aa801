"""All of them."""

from starlette.responses import RedirectResponse, Response

from hubgate.server.access.actions import Action
from hubgate.server.accounts.context import Accounts
from hubgate.server.http.request import HubRequest
from hubgate.server.http.routes import Route
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.context import OAuth
from hubgate.server.web.own_account import require_own
from hubgate.server.web.pages.settings import (
    deletion,
    export,
    organizations,
    password,
    profile,
    sessions,
    token,
    tokens,
)
from hubgate.server.web.rendering import Pages


def routes(pages: Pages, accounts: Accounts, oauth: OAuth) -> list[Route]:
    async def first(request: HubRequest) -> Response:
        require_own(request, Action.ACCOUNT_READ_SETTINGS)
        return RedirectResponse(profile.PATH, 303)

    read = Action.ACCOUNT_READ_SETTINGS.rule.name
    return [
        Route("GET", "/settings", first, Surface.PAGE, read, "Leads to the first page of the settings"),
        *profile.routes(pages, accounts),
        *password.routes(pages, accounts),
        *sessions.routes(pages, accounts),
        *tokens.routes(pages, accounts, oauth),
        *token.routes(pages, accounts),
        *organizations.routes(pages, accounts),
        *export.routes(accounts, oauth),
        *deletion.routes(pages, accounts),
    ]
