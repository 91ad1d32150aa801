"""Addresses about the apps of one owner: the caller's own, or those of an organization the caller administers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, actor_of, caller_of
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization, User
from hubgate.server.audit.model import Actor
from hubgate.server.edge.endpoint import own
from hubgate.server.edge.routes import Route
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.apps.owning import Owner
from hubgate.server.web.named import address_of, organization_route

OWN = "/settings/applications"
ORGANIZATION = "/organizations/{name}/settings/applications"


@dataclass(frozen=True)
class Desk:
    """Whose apps they are, and who is at work on them."""

    user: User
    actor: Actor
    organization: Organization | None = None

    @property
    def owner(self) -> Owner:
        return Owner(org_id=self.organization.id) if self.organization else Owner(user_id=self.user.id)

    @property
    def root(self) -> str:
        """The page that lists them."""
        return address_of(ORGANIZATION, self.organization.name) if self.organization else OWN

    def at(self, client_id: str) -> str:
        return f"{self.root}/{client_id}"


OfOwner = Callable[[HubRequest, Desk], Awaitable[ASGIApp]]


def own_route(method: str, path: str, handler: OfOwner, surface: Surface, summary: str, **more: Any) -> Route:
    action = _action(method, path, surface, Action.ACCOUNT_READ_SETTINGS, Action.ACCOUNT_WRITE_SETTINGS)

    async def handle(request: HubRequest, caller: Caller) -> ASGIApp:
        return await handler(request, Desk(caller.user, actor_of(request)))

    return Route(method, _prefix(surface) + OWN + path, own(action, handle), surface, summary, **more)


def organizations_route(
    accounts: Accounts, method: str, path: str, handler: OfOwner, surface: Surface, summary: str, **more: Any
) -> Route:
    action = _action(method, path, surface, Action.ORG_READ_APPS, Action.ORG_WRITE_APPS)

    async def handle(request: HubRequest, organization: Organization) -> ASGIApp:
        desk = Desk(caller_of(request).user, actor_of(request), organization)
        return await handler(request, desk)

    full = _prefix(surface) + ORGANIZATION + path
    return organization_route(accounts, method, full, handle, surface, action, summary, **more)


def _prefix(surface: Surface) -> str:
    return "/api" if surface is Surface.API else ""


# The pages that show how things stand, whatever forms are on them too.
_VIEWS = ("", "/{client_id}", "/{client_id}/exchange", "/{client_id}/exchange/members/{user}")


def _action(method: str, path: str, surface: Surface, read: Action, write: Action) -> Action:
    """Looking at a form that changes something takes the right to change it."""
    is_form = surface is Surface.PAGE and path not in _VIEWS
    return read if method == "GET" and not is_form else write
