"""All routes of the operator's pages."""

from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.routes import Route
from hubgate.server.oauth.context import OAuth
from hubgate.server.web.pages.operator import organizations, overview, requests, users
from hubgate.server.web.rendering import Pages


def routes(pages: Pages, accounts: Accounts, oauth: OAuth) -> list[Route]:
    return [
        *overview.routes(pages, accounts, oauth),
        *users.routes(pages, accounts),
        *organizations.routes(pages, accounts),
        *requests.routes(pages, oauth),
    ]
