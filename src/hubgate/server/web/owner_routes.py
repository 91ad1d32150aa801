"""Routes about apps, resource servers, webhooks and redirects for both kinds of owner: `/settings/webhooks` for the
caller's own, `/organizations/{name}/settings/webhooks` for an organization that the caller administers.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of, caller_of
from hubgate.server.access.identity import Identity
from hubgate.server.access.resource import Account
from hubgate.server.access.resource import Organization as OrganizationResource
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization, Owner, User
from hubgate.server.audit.model import Actor
from hubgate.server.edge.routes import Endpoint, Handler, Locator, Route, Target
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.web.account_paths import address_of, moved_to, organization_named
from hubgate.server.web.rendering import NO_ERRORS, Pages


class OwnerContext(Struct, frozen=True):
    """The owner, and the user who acts for the owner."""

    user: User
    actor: Actor
    identity: Identity
    # Address of the list page.
    root: str
    organization: Organization | None = None

    @property
    def owner(self) -> Owner:
        return Owner(org_id=self.organization.id) if self.organization else Owner(user_id=self.user.id)

    def address_of(self, item_id: str) -> str:
        """Return the address of the page about one app or webhook."""
        return f"{self.root}/{item_id}"


class Section(Struct, frozen=True):
    """A section of the settings. In each pair of actions, the first is for users, the second for organizations."""

    path: str
    read_actions: tuple[Action, Action]
    write_actions: tuple[Action, Action]

    @property
    def organization_path(self) -> str:
        return "/organizations/{name}" + self.path

    def route(
        self,
        accounts: Accounts | None,
        method: str,
        path: str,
        handler: Handler[OwnerContext],
        surface: Surface,
        summary: str,
        *,
        form: bool = False,
        **more: Any,
    ) -> Route:
        """Create a route for organizations, or for the caller's account if `accounts` is None. Viewing a `form`
        requires the permission to submit it.
        """
        user_action, organization_action = self.read_actions if method == "GET" and not form else self.write_actions
        prefix, at = "/api" if surface is Surface.API else "", self.path if accounts is None else self.organization_path
        full_path = prefix + at + path
        if accounts is None:
            endpoint = Endpoint(user_action, Locator((Account,), self._find_caller), handler)
        else:
            endpoint = Endpoint(organization_action, self._organization_locator(accounts, full_path, surface), handler)
        return Route(method, full_path, endpoint, surface, summary, **more)

    async def _find_caller(self, request: HubRequest) -> Target[OwnerContext]:
        caller = caller_of(request)
        context = OwnerContext(caller.user, actor_of(request), caller.identity, self.path)
        return Target(context, Account(caller.user.id))

    def _organization_locator(self, accounts: Accounts, full_path: str, surface: Surface) -> Locator[OwnerContext]:
        async def find(request: HubRequest) -> Target[OwnerContext]:
            found = await organization_named(accounts, request, surface)
            root = address_of(self.organization_path, found.name)
            caller = caller_of(request)
            context = OwnerContext(caller.user, actor_of(request), caller.identity, root, found)
            return Target(context, OrganizationResource(found.id), moved_to=moved_to(request, full_path, found.name))

        return Locator((OrganizationResource,), find)


APPLICATIONS = Section(
    "/settings/applications",
    (Action.ACCOUNT_READ_SETTINGS, Action.ORG_READ_APPS),
    (Action.ACCOUNT_WRITE_SETTINGS, Action.ORG_WRITE_APPS),
)
RESOURCES = Section(
    "/settings/resources",
    (Action.ACCOUNT_READ_SETTINGS, Action.ORG_READ_APPS),
    (Action.ACCOUNT_WRITE_SETTINGS, Action.ORG_WRITE_APPS),
)
WEBHOOKS = Section(
    "/settings/webhooks",
    (Action.ACCOUNT_READ_WEBHOOKS, Action.ORG_READ_WEBHOOKS),
    (Action.ACCOUNT_WRITE_WEBHOOKS, Action.ORG_WRITE_WEBHOOKS),
)
REDIRECTS = Section(
    "/settings/redirects",
    (Action.ACCOUNT_READ_SETTINGS, Action.ORG_READ_SETTINGS),
    (Action.ACCOUNT_WRITE_SETTINGS, Action.ORG_WRITE_SETTINGS),
)


def render_settings_page(
    pages: Pages,
    request: HubRequest,
    context: OwnerContext,
    template: str,
    errors: Mapping[str, str] = NO_ERRORS,
    **values: Any,
) -> Response:
    """Render a page in the owner's settings."""
    return pages.page(
        request,
        template,
        errors=errors,
        frame="organization/base.html" if context.organization else "settings/base.html",
        section=context.root,
        root=context.root,
        organization=context.organization,
        **values,
    )
