"""Removing a member, on a separate page that explains the effect."""

from typing import Any

from starlette.responses import Response

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of, caller_of
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import members, store
from hubgate.server.edge.routes import KIB, Route
from hubgate.server.errors import Conflict, NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.web.named import address_of, organization_route, user_named
from hubgate.server.web.pages.organizations.members import PATH as MEMBERS
from hubgate.server.web.rendering import Pages

_PATH = MEMBERS + "/{user}/remove"
_TEMPLATE = "organization/remove_member.html"
_ACTION = Action.ORG_WRITE_MEMBERS


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    def values(organization: Organization, user: User) -> dict[str, Any]:
        return {"organization": organization, "section": address_of(MEMBERS, organization.name), "user": user}

    async def ask(request: HubRequest, organization: Organization) -> Response:
        user = await user_named(accounts, request.param("user"))
        if await store.role_of(accounts.db, organization.id, user.id) is None:
            raise NotFound(f"{user.name} is not a member of {organization.name}.")
        return pages.page(request, _TEMPLATE, **values(organization, user))

    async def remove(request: HubRequest, organization: Organization) -> Response:
        user = await user_named(accounts, request.param("user"))
        try:
            await members.remove(accounts, organization, user, actor_of(request))
        except Conflict as error:
            return pages.show_errors(request, _TEMPLATE, error, "remove", **values(organization, user))
        if user.id == caller_of(request).user.id:
            # The user is no longer a member and cannot see the members page.
            return pages.redirect(f"/{organization.name}", f"You left {organization.name}.")
        return pages.redirect(address_of(MEMBERS, organization.name), f"Removed {user.name}.")

    what = "Remove a member"
    return [
        organization_route(accounts, "GET", _PATH, ask, Surface.PAGE, _ACTION, what),
        organization_route(accounts, "POST", _PATH, remove, Surface.PAGE, _ACTION, what, body_cap=16 * KIB),
    ]
