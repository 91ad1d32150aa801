"""All routes of the operator's pages, except those about Spaces."""

from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.routes import Route
from hubgate.server.jobs.heartbeats import Heartbeats
from hubgate.server.oauth.context import OAuth
from hubgate.server.web.pages.operator import mail, organizations, overview, privileges, requests, users
from hubgate.server.web.pages.operator.frame import OperatorPages
from hubgate.server.web.rendering import Pages
from hubgate.server.webhooks.context import Webhooks


def routes(pages: Pages, accounts: Accounts, oauth: OAuth, webhooks: Webhooks, heartbeats: Heartbeats) -> list[Route]:
    frame = OperatorPages(pages, oauth)
    return [
        *overview.routes(frame, accounts, webhooks, heartbeats),
        *users.routes(frame, accounts),
        *organizations.routes(frame, accounts),
        *requests.routes(frame),
        *privileges.routes(frame),
        *mail.routes(frame, accounts),
    ]
