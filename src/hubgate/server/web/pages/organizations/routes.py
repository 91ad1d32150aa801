"""All routes of the pages about organizations."""

from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.routes import Route
from hubgate.server.web.pages.organizations import audit_log, create, deletion, members, profile, removal, roster
from hubgate.server.web.rendering import Pages


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    return [
        *create.routes(pages, accounts),
        *roster.routes(pages, accounts),
        *profile.routes(pages, accounts),
        *members.routes(pages, accounts),
        *removal.routes(pages, accounts),
        *deletion.routes(pages, accounts),
        *audit_log.routes(pages, accounts),
    ]
