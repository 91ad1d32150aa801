"""Public overviews of users and organizations, with the number of repos that the caller may see."""

from typing import Literal

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.resource import HUB, Hub
from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import store as org_store
from hubgate.server.clock import iso
from hubgate.server.edge.guard import Guard
from hubgate.server.edge.routes import Endpoint, Locator, Route, Target
from hubgate.server.errors import NotFound
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import store as discussion_store
from hubgate.server.hub.listing.listing import RepoCounts, count_repos
from hubgate.server.web.account_paths import moved_to, organization_named, user_named
from hubgate.server.web.avatars import avatar_url

_OF_USER, _OF_ORGANIZATION = "/api/users/{name}/overview", "/api/organizations/{name}/overview"
_MOVED = "The account was renamed: follow the redirect."


class OrganizationInOverview(msgspec.Struct, rename="camel"):
    id: str
    name: str
    fullname: str
    avatar_url: str


class UserOverview(msgspec.Struct, rename="camel"):
    id: str = msgspec.field(name="_id")
    user: str
    fullname: str
    avatar_url: str
    created_at: str
    orgs: list[OrganizationInOverview]
    type: Literal["user"] = "user"
    is_pro: bool = False
    num_models: int = 0
    num_datasets: int = 0
    num_spaces: int = 0
    num_discussions: int = 0
    num_followers: int = 0
    num_following: int = 0


class OrganizationOverview(msgspec.Struct, rename="camel"):
    id: str = msgspec.field(name="_id")
    name: str
    fullname: str
    avatar_url: str
    created_at: str
    plan: str
    num_users: int
    type: Literal["org"] = "org"
    num_models: int = 0
    num_datasets: int = 0
    num_spaces: int = 0
    num_followers: int = 0


def routes(accounts: Accounts, repos: Repos, guard: Guard) -> list[Route]:
    async def count_visible_repos(request: HubRequest, owner_id: str) -> RepoCounts:
        return await count_repos(repos, (await guard.caller_or_anonymous(request)).identity, owner_id)

    async def find_user(request: HubRequest) -> Target[User]:
        user = await user_named(accounts, request.param("name"))
        if user.disabled_at is not None:
            raise NotFound("User not found.")
        return Target(user, HUB, moved_to=moved_to(request, _OF_USER, user.name))

    async def of_user(request: HubRequest, user: User) -> Response:
        counts = await count_visible_repos(request, user.id)
        discussions = await repos.db.read_long(lambda tx: discussion_store.count_public_by(tx, user.id))
        return JsonResponse(await _user_overview(accounts, user, counts, discussions))

    async def find_organization(request: HubRequest) -> Target[Organization]:
        organization = await organization_named(accounts, request, Surface.API)
        return Target(organization, HUB, moved_to=moved_to(request, _OF_ORGANIZATION, organization.name))

    async def of_organization(request: HubRequest, organization: Organization) -> Response:
        counts = await count_visible_repos(request, organization.id)
        return JsonResponse(
            OrganizationOverview(
                id=organization.id,
                name=organization.name,
                fullname=organization.display_name,
                avatar_url=avatar_url(organization.id),
                created_at=iso(organization.created_at),
                plan=organization.plan,
                num_users=await org_store.count_members(accounts.db, organization.id),
                num_models=counts.models,
                num_datasets=counts.datasets,
                num_spaces=counts.spaces,
            )
        )

    return [
        Route(
            "GET",
            _OF_USER,
            Endpoint(Action.HUB_PUBLIC, Locator((Hub,), find_user), of_user),
            Surface.API,
            "Overview of a user",
            answers={200: ("The user.", UserOverview), 307: (_MOVED, None), 404: ("User not found.", None)},
        ),
        Route(
            "GET",
            _OF_ORGANIZATION,
            Endpoint(Action.HUB_PUBLIC, Locator((Hub,), find_organization), of_organization),
            Surface.API,
            "Overview of an organization",
            answers={
                200: ("The organization.", OrganizationOverview),
                307: (_MOVED, None),
                404: ("Organization not found.", None),
            },
        ),
    ]


async def _user_overview(accounts: Accounts, user: User, counts: RepoCounts, discussions: int) -> UserOverview:
    organizations = await store.organizations_of(accounts.db, user.id)
    return UserOverview(
        id=user.id,
        user=user.name,
        fullname=user.display_name,
        avatar_url=avatar_url(user.id),
        created_at=iso(user.created_at),
        orgs=[OrganizationInOverview(o.id, o.name, o.display_name, avatar_url(o.id)) for o in organizations],
        num_models=counts.models,
        num_datasets=counts.datasets,
        num_spaces=counts.spaces,
        num_discussions=discussions,
    )
