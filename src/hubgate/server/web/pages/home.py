"""The home page: an introduction for visitors; recent repos, invitations and failing webhooks for users."""

from starlette.responses import Response

from hubgate.server.access.caller import caller_of
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.organizations import invitations
from hubgate.server.edge.routes import Route, public
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.listing import listing
from hubgate.server.hub.listing.store import RepoFilter
from hubgate.server.paging import PageRequest
from hubgate.server.web.pages.listing import first_of
from hubgate.server.web.rendering import Pages
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.management import lifecycle

RECENT = 8
MOST_TROUBLED = 5


def routes(pages: Pages, accounts: Accounts, repos: Repos, webhooks: Webhooks) -> list[Route]:
    async def home(request: HubRequest) -> Response:
        identity, person = caller_of(request).identity, caller_of(request).person
        if person is None:
            return pages.page(request, "home.html", recent=await listing.recent_repos(repos, identity, RECENT))
        owners = [person.user.id, *(found.organization.id for found in person.memberships)]
        own = await listing.list_repos(repos, identity, RepoFilter(owners=owners), PageRequest(RECENT))
        invited, more_invited = first_of(await invitations.of_user(accounts, person.user))
        troubled, more_troubled = await lifecycle.failing_webhooks(webhooks, person.user.id, MOST_TROUBLED)
        memberships, more = first_of(person.memberships)
        return pages.page(
            request,
            "home_in.html",
            invited=invited,
            more_invited=more_invited,
            troubled=troubled,
            more_troubled=more_troubled,
            memberships=memberships,
            more=more,
            recent=own.items,
            more_repos=own.next_cursor is not None,
        )

    return [Route("GET", "/", public(home), Surface.PAGE, "Home")]
