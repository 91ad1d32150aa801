"""What the pages share: they stand in the settings of a user or of an organization, at both addresses."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, caller_of
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization, User
from hubgate.server.edge.endpoint import own
from hubgate.server.edge.routes import KIB, Route
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.web.named import address_of, organization_route
from hubgate.server.web.rendering import NO_ERRORS, Pages
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.managing import managing
from hubgate.server.webhooks.managing.managing import Kept, Owner
from hubgate.server.webhooks.model import Webhook

OWN = "/settings/webhooks"
ORGANIZATION = "/organizations/{name}/settings/webhooks"
ONE = "/{id}"
_CAP = 64 * KIB
_TABS = (("", "Activity"), ("/settings", "Settings"), ("/events", "Events"))


@dataclass(frozen=True)
class Desk:
    """Whose webhooks they are, and who is at work on them."""

    user: User
    organization: Organization | None = None

    @property
    def owner(self) -> Owner:
        return Owner(org_id=self.organization.id) if self.organization else Owner(user_id=self.user.id)

    @property
    def root(self) -> str:
        """The page that lists them."""
        return address_of(ORGANIZATION, self.organization.name) if self.organization else OWN

    @property
    def own_watch(self) -> str:
        """What most watch first: themselves."""
        return f"org:{self.organization.name}" if self.organization else f"user:{self.user.name}"

    def at(self, webhook: Webhook) -> str:
        return f"{self.root}/{webhook.id}"


OfOwner = Callable[[HubRequest, Desk], Awaitable[ASGIApp]]


def name_of(webhook: Webhook) -> str:
    """What people call it: the host it sends to, whole; of one that only keeps events, its id."""
    return webhook.host or webhook.id


@dataclass(frozen=True)
class Frame:
    pages: Pages
    webhooks: Webhooks
    accounts: Accounts

    def views(self, path: str, handler: OfOwner, summary: str) -> list[Route]:
        """A page that shows how things stand."""
        return self._routes("GET", path, handler, summary, Action.ACCOUNT_READ_WEBHOOKS, Action.ORG_READ_WEBHOOKS)

    def forms(self, method: str, path: str, handler: OfOwner, summary: str) -> list[Route]:
        """Looking at a form that changes something takes the right to change it."""
        return self._routes(method, path, handler, summary, Action.ACCOUNT_WRITE_WEBHOOKS, Action.ORG_WRITE_WEBHOOKS)

    def _routes(
        self, method: str, path: str, handler: OfOwner, summary: str, of_own: Action, organizations: Action
    ) -> list[Route]:
        async def of_user(request: HubRequest, caller: Caller) -> ASGIApp:
            return await handler(request, Desk(caller.user))

        async def of_organization(request: HubRequest, organization: Organization) -> ASGIApp:
            return await handler(request, Desk(caller_of(request).user, organization))

        full, page = ORGANIZATION + path, Surface.PAGE
        theirs = f"{summary} (an organization's)"
        return [
            Route(method, OWN + path, own(of_own, of_user), page, summary, body_cap=_CAP),
            organization_route(
                self.accounts, method, full, of_organization, page, organizations, theirs, body_cap=_CAP
            ),
        ]

    def show(
        self, request: HubRequest, desk: Desk, template: str, errors: Mapping[str, str] = NO_ERRORS, **values: Any
    ) -> Response:
        return self.pages.page(
            request,
            f"webhooks/{template}",
            errors=errors,
            frame="organization/base.html" if desk.organization else "settings/base.html",
            section=desk.root,
            root=desk.root,
            organization=desk.organization,
            **values,
        )

    def show_one(
        self,
        request: HubRequest,
        desk: Desk,
        kept: Kept,
        template: str,
        errors: Mapping[str, str] = NO_ERRORS,
        **values: Any,
    ) -> Response:
        """A page about one webhook. Its tab is named by the template."""
        at = desk.at(kept.webhook)
        tabs = [(at + path, label, f"{label.lower()}.html" == template) for path, label in _TABS]
        return self.show(
            request,
            desk,
            template,
            errors,
            webhook=kept.webhook,
            watched=kept.watched,
            name=name_of(kept.webhook),
            at=at,
            tabs=tabs,
            **values,
        )

    async def kept(self, request: HubRequest, desk: Desk) -> Kept:
        return await managing.get(self.webhooks, desk.owner, request.param("id"))
