"""The home page: an introduction for visitors; for users what needs attention, recent activity, their repos,
organizations and webhooks.
"""

from collections.abc import Sequence

from hubgate.server.access.caller import caller_of
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Owner
from hubgate.server.accounts.organizations import invitations
from hubgate.server.accounts.roles import Role
from hubgate.server.edge.routes import Route, public
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.activity.recent import Sources, recent_activity
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import store as discussions
from hubgate.server.hub.gating import store as gating_store
from hubgate.server.hub.listing import listing
from hubgate.server.hub.listing.store import RepoFilter
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.operator_requests import decision
from hubgate.server.paging import PageRequest
from hubgate.server.web.pages.listing import first_rows
from hubgate.server.web.pages.webhooks.charts import Spark, spark
from hubgate.server.web.pages.webhooks.page_context import name_of
from hubgate.server.web.rendering import Pages
from hubgate.server.webhooks.activity.charts import hourly_totals
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.management import lifecycle
from hubgate.server.webhooks.management.lifecycle import StoredWebhook
from hubgate.server.webhooks.model import Webhook

RECENT_REPOS = 8
RECENT_DISCUSSIONS = 8
MAX_FAILING = 5
MAX_WEBHOOKS = 5
# Repos with access requests.
MAX_WAITING = 5


def routes(pages: Pages, accounts: Accounts, repos: Repos, oauth: OAuth, webhooks: Webhooks) -> list[Route]:
    async def home(request: HubRequest) -> Response:
        identity, person = caller_of(request).identity, caller_of(request).person
        if person is None:
            return pages.page(request, "home.html", recent=await listing.recent_repos(repos, identity, RECENT_REPOS))
        owners = [person.user.id, *(found.organization.id for found in person.memberships)]
        own = await listing.list_repos(repos, identity, RepoFilter(owners=owners), PageRequest(RECENT_REPOS))
        invited, more_invited = first_rows(await invitations.of_user(accounts, person.user))
        failing, more_failing = await lifecycle.failing_webhooks(webhooks, person.user.id, MAX_FAILING)
        managed = [person.user.id, *(m.organization.id for m in person.memberships if m.role >= Role.WRITE)]
        access_requests = await repos.db.read_long(lambda tx: gating_store.waiting(tx, managed, MAX_WAITING))
        memberships, more = first_rows(person.memberships)
        stored_webhooks = await lifecycle.list_webhooks(webhooks, Owner(person.user.id))
        busiest = await _busiest_webhooks(webhooks, person.user.id)
        user_id = person.user.id
        talks = await repos.db.read_long(lambda tx: discussions.open_with_participant(tx, user_id, RECENT_DISCUSSIONS))
        activity = await recent_activity(repos, identity, _sources(owners, stored_webhooks))
        return pages.page(
            request,
            "home_signed_in.html",
            waiting_requests=await decision.count_pending(oauth) if identity.operator else 0,
            activity=activity,
            base_url=repos.base_url,
            invited=invited,
            more_invited=more_invited,
            access_requests=access_requests,
            failing=failing,
            more_failing=more_failing,
            webhooks=busiest[:MAX_WEBHOOKS],
            more_webhooks=len(busiest) > MAX_WEBHOOKS,
            memberships=memberships,
            more=more,
            discussions=talks,
            recent=own.items,
            more_repos=own.next_cursor is not None,
        )

    return [Route("GET", "/", public(home), Surface.PAGE, "Home")]


def _sources(owners: Sequence[str], stored_webhooks: Sequence[StoredWebhook]) -> Sources:
    """The user's own namespaces, and what the user's webhooks watch."""
    watches = [watch for stored in stored_webhooks for watch in stored.watched if watch.target_id]
    return Sources(
        own=owners,
        watched_owners=[watch.target_id for watch in watches if watch.target_id and watch.type in ("user", "org")],
        watched_repos=[watch.target_id for watch in watches if watch.target_id and watch.type not in ("user", "org")],
    )


async def _busiest_webhooks(webhooks: Webhooks, user_id: str) -> list[tuple[Webhook, str, str | None, Spark | None]]:
    """Webhooks with their names, organizations and sparklines; one more than is shown, if there are more."""
    found = await lifecycle.busiest_webhooks(webhooks, user_id, MAX_WEBHOOKS + 1)
    totals: dict[str, list[int]] = {}
    for owner in {Owner(one.user_id, one.org_id) for one, _ in found}:
        totals |= await hourly_totals(webhooks, owner)
    return [(one, name_of(one), organization, spark(totals.get(one.id))) for one, organization in found]
