"""All routes of the account settings."""

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller
from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.routes import Route, own
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import RedirectResponse, Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.oauth.context import OAuth
from hubgate.server.web.pages.settings import (
    export,
    fine_grained_tokens,
    organizations,
    password,
    profile,
    sessions,
    tokens,
)
from hubgate.server.web.rendering import Pages
from hubgate.server.webhooks.context import Webhooks


def routes(pages: Pages, accounts: Accounts, repos: Repos, oauth: OAuth, webhooks: Webhooks) -> list[Route]:
    async def redirect_to_profile(_: HubRequest, __: Caller) -> Response:
        return RedirectResponse(profile.PATH, 303)

    return [
        Route(
            "GET",
            "/settings",
            own(Action.ACCOUNT_READ_SETTINGS, redirect_to_profile),
            Surface.PAGE,
            "Redirect to the first page of the settings",
        ),
        *profile.routes(pages, accounts, repos),
        *password.routes(pages, accounts),
        *sessions.routes(pages, accounts),
        *tokens.routes(pages, accounts, oauth),
        *fine_grained_tokens.routes(pages, accounts, repos),
        *organizations.routes(pages, accounts),
        *export.routes(accounts, oauth, webhooks),
    ]
