"""The members of an organization, as shown to every member."""

from starlette.responses import Response

from hubgate.server.access.actions import Action
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization
from hubgate.server.accounts.organizations import members
from hubgate.server.edge.routes import Route
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.web.named import address_of, organization_route
from hubgate.server.web.pages.listing import ListQuery
from hubgate.server.web.rendering import Pages

_PATH = "/organizations/{name}/members"


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(request: HubRequest, organization: Organization) -> Response:
        here = address_of(_PATH, organization.name)
        asked = ListQuery(request.query(), here)
        found = await members.listed(accounts, organization, asked.page(members.CURSOR), asked.search)
        return pages.page(
            request,
            "organization/roster.html",
            organization=organization,
            members=found.items,
            **asked.shown(found.next_cursor),
            list=here,
        )

    action = Action.ORG_READ_MEMBERS
    return [organization_route(accounts, "GET", _PATH, show, Surface.PAGE, action, "An organization's members")]
