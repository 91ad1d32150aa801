"""Deleting an organization: the page lists the consequences and asks for its name as confirmation."""

from collections.abc import Mapping

from starlette.responses import Response

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization
from hubgate.server.accounts.organizations import settings, store
from hubgate.server.edge.routes import KIB, Route
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.web.named import organization_route
from hubgate.server.web.rendering import NO_ERRORS, Pages

_PATH = "/organizations/{name}/settings/delete"
_ACTION = Action.ORG_WRITE_SETTINGS


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def ask(
        request: HubRequest, organization: Organization, errors: Mapping[str, str] = NO_ERRORS, typed: str = ""
    ) -> Response:
        now = accounts.clock()
        return pages.page(
            request,
            "organization/delete.html",
            errors=errors,
            organization=organization,
            section="",
            repos=await repo_store.count_of_owner(accounts.db, organization.id),
            members=await store.count_members(accounts.db, organization.id),
            invitations=await store.count_invitations(accounts.db, organization.id, now),
            typed=typed,
        )

    async def delete(request: HubRequest, organization: Organization) -> Response:
        typed = request.form_fields.get("name").strip()
        if typed != organization.name:
            return await ask(
                request, organization, {"name": f"Type {organization.name}, as it is written here."}, typed
            )
        await settings.delete(accounts, organization, actor_of(request))
        return pages.redirect("/settings/organizations", f"Deleted {organization.name}.")

    what = "Delete an organization"
    return [
        organization_route(accounts, "GET", _PATH, ask, Surface.PAGE, _ACTION, what),
        organization_route(accounts, "POST", _PATH, delete, Surface.PAGE, _ACTION, what, body_cap=16 * KIB),
    ]
