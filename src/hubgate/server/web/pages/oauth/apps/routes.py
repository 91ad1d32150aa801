"""All routes of the pages about apps."""

from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.routes import Route
from hubgate.server.oauth.context import OAuth
from hubgate.server.web.pages.oauth.apps import (
    active_tokens,
    exchange,
    operator_requests,
    registration,
    secrets,
)
from hubgate.server.web.pages.oauth.apps.frame import Frame
from hubgate.server.web.rendering import Pages


def routes(pages: Pages, oauth: OAuth, accounts: Accounts) -> list[Route]:
    frame = Frame(pages, oauth, accounts)
    return [
        *registration.routes(frame),
        *secrets.routes(frame),
        *exchange.routes(frame),
        *active_tokens.routes(frame),
        *operator_requests.routes(frame),
    ]
