"""All routes of the pages about webhooks."""

from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.routes import Route
from hubgate.server.web.pages.webhooks import activity, catalogue, create, edit, explain, replays
from hubgate.server.web.pages.webhooks.page_context import WebhookPageContext
from hubgate.server.web.rendering import Pages
from hubgate.server.webhooks.context import Webhooks


def routes(pages: Pages, webhooks: Webhooks, accounts: Accounts) -> list[Route]:
    base = WebhookPageContext(pages, webhooks, accounts)
    return [
        *create.routes(base),
        *activity.routes(base),
        *edit.routes(base),
        *replays.routes(base),
        *explain.routes(base),
        *catalogue.routes(pages),
    ]
