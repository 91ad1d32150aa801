"""All routes of the pages about organizations."""

from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.routes import Route
from hubgate.server.hub.context import Repos
from hubgate.server.web.pages.organizations import audit_log, members, settings
from hubgate.server.web.rendering import Pages


def routes(pages: Pages, accounts: Accounts, repos: Repos) -> list[Route]:
    return [
        *settings.routes(pages, accounts, repos),
        *members.routes(pages, accounts),
        *audit_log.routes(pages, accounts),
    ]
