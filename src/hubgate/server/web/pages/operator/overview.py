"""The operator's start page: counts, and whether mail is stuck."""

from starlette.responses import Response

from hubgate.server.accounts import operator_lists
from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.routes import Route
from hubgate.server.http.request import HubRequest
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.requests import decision
from hubgate.server.web.pages.operator.route import operator_route
from hubgate.server.web.rendering import Pages


def routes(pages: Pages, accounts: Accounts, oauth: OAuth) -> list[Route]:
    async def show(request: HubRequest) -> Response:
        counts, waiting = await operator_lists.counts(accounts), await decision.count_pending(oauth)
        return pages.page(
            request, "operator/overview.html", section="/operator", counts=counts, waiting_requests=waiting
        )

    return [operator_route("GET", "/operator", show, "The hub in numbers")]
