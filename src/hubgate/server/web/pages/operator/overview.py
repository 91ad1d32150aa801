"""The operator's first page: how many of what, and whether mail is stuck."""

from starlette.responses import Response

from hubgate.server.accounts import oversight
from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.routes import Route
from hubgate.server.http.request import HubRequest
from hubgate.server.web.pages.operator.desk import operator_route
from hubgate.server.web.rendering import Pages


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(request: HubRequest) -> Response:
        counts = await oversight.counts(accounts)
        return pages.page(request, "operator/overview.html", section="/operator", counts=counts)

    return [operator_route("GET", "/operator", show, "The hub in numbers")]
