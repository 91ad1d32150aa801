"""All routes for signing in and out, signing up, invitations and mailed links."""

from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.routes import Route
from hubgate.server.oauth.context import OAuth
from hubgate.server.web.pages.entry import addresses, invitation, join, signin
from hubgate.server.web.rendering import Pages


def routes(pages: Pages, accounts: Accounts, oauth: OAuth) -> list[Route]:
    return [
        *signin.routes(pages, accounts, oauth),
        *join.routes(pages, accounts),
        *addresses.routes(pages, accounts),
        *invitation.routes(pages, accounts),
    ]
