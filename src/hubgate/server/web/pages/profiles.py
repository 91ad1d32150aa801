"""Public profiles of users and organizations: `/{name}`."""

from urllib.parse import urlsplit

from msgspec import Struct

from hubgate.server.access import resource
from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.policy import decide
from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import store as org_store
from hubgate.server.edge.edge import NOTHING_HERE
from hubgate.server.edge.routes import Endpoint, Locator, Route, Target
from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.web.account_paths import moved_to
from hubgate.server.web.pages.collections.lists import profile_collections
from hubgate.server.web.pages.listing import first_rows
from hubgate.server.web.pages.repos.lists import profile_repos
from hubgate.server.web.rendering import Pages

_PATH = "/{name}"


class Website(Struct, frozen=True):
    """A website as displayed: the host is complete and in ASCII, so that a look-alike letter is recognizable."""

    host: str
    path: str

    @classmethod
    def of(cls, address: str) -> "Website":
        parts = urlsplit(address)
        try:
            host = parts.netloc.encode("idna").decode()
        except UnicodeError:
            host = parts.netloc.encode("ascii", "backslashreplace").decode()
        return cls(host, parts.path.rstrip("/"))


def routes(pages: Pages, accounts: Accounts, repos: Repos) -> list[Route]:
    async def find(request: HubRequest) -> Target[User | Organization]:
        found = await store.account_named(accounts.db, request.param("name"))
        if found is None or (isinstance(found, User) and found.disabled_at is not None):
            raise NotFound(NOTHING_HERE)
        return Target(found, resource.HUB, moved_to=moved_to(request, _PATH, found.name))

    async def show(request: HubRequest, found: User | Organization) -> Response:
        return await (of_user(request, found) if isinstance(found, User) else of_organization(request, found))

    async def of_user(request: HubRequest, user: User) -> Response:
        organizations, more = first_rows(await store.organizations_of(accounts.db, user.id))
        return pages.page(
            request,
            "profile/user.html",
            owner=user,
            website=Website.of(user.website),
            organizations=organizations,
            more=more,
            edit="/settings/profile" if caller_of(request).identity.user_id == user.id else "",
            **await profile_repos(repos, request, resource.Account(user.id), user.name),
            **await profile_collections(repos, request, resource.Account(user.id), user.name),
        )

    async def of_organization(request: HubRequest, organization: Organization) -> Response:
        identity, organization_resource = caller_of(request).identity, resource.Organization(organization.id)
        root = f"/organizations/{organization.name}"
        may_see_members = decide(identity, Action.ORG_READ_MEMBERS, organization_resource).allowed
        may_change = decide(identity, Action.ORG_WRITE_SETTINGS, organization_resource).allowed
        return pages.page(
            request,
            "profile/organization.html",
            owner=organization,
            website=Website.of(organization.website),
            members=await org_store.count_members(accounts.db, organization.id),
            roster=f"{root}/members" if may_see_members else "",
            edit=f"{root}/settings/profile" if may_change else "",
            **await profile_repos(repos, request, organization_resource, organization.name),
            **await profile_collections(repos, request, organization_resource, organization.name),
        )

    endpoint = Endpoint(Action.HUB_PUBLIC, Locator((resource.Hub,), find), show)
    return [Route("GET", _PATH, endpoint, Surface.PAGE, "The profile of a user or an organization")]
