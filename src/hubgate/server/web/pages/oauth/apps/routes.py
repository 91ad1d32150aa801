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
from hubgate.server.web.pages.oauth.apps.page_context import AppPageContext
from hubgate.server.web.rendering import Pages


def routes(pages: Pages, oauth: OAuth, accounts: Accounts) -> list[Route]:
    base = AppPageContext(pages, oauth, accounts)
    return [
        *registration.routes(base),
        *secrets.routes(base),
        *exchange.routes(base),
        *active_tokens.routes(base),
        *operator_requests.routes(base),
    ]
