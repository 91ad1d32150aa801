"""An organization's profile, for its admins: full name, website, billing flag, name."""

from typing import Any

from starlette.responses import RedirectResponse, Response

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization
from hubgate.server.accounts.organizations import settings
from hubgate.server.edge.routes import KIB, Handler, Route
from hubgate.server.errors import FieldErrors, TooManyRequests
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.web.named import address_of, organization_route
from hubgate.server.web.rendering import Pages

_ROOT = "/organizations/{name}/settings"
_PROFILE = f"{_ROOT}/profile"
_TEMPLATE = "organization/profile.html"
_CHANGE = Action.ORG_WRITE_SETTINGS


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    def values(organization: Organization, **given: str) -> dict[str, Any]:
        """Values of the fields; rejected input is shown again."""
        return {
            "organization": organization,
            "section": address_of(_PROFILE, organization.name),
            "given": {
                "fullname": organization.fullname,
                "website": organization.website,
                "name": organization.name,
                **given,
            },
        }

    async def first(_: HubRequest, organization: Organization) -> Response:
        return RedirectResponse(address_of(_PROFILE, organization.name), 303)

    async def show(request: HubRequest, organization: Organization) -> Response:
        return pages.page(request, _TEMPLATE, **values(organization))

    async def save(request: HubRequest, organization: Organization) -> Response:
        fullname, website = request.form_fields.get("fullname"), request.form_fields.get("website")
        try:
            await settings.set_profile(accounts, organization, fullname, website, actor_of(request))
        except FieldErrors as error:
            return pages.show_errors(
                request, _TEMPLATE, error, "fullname", **values(organization, fullname=fullname, website=website)
            )
        return pages.redirect(address_of(_PROFILE, organization.name), "Saved.")

    async def bill(request: HubRequest, organization: Organization) -> Response:
        can_pay = request.form_fields.get("can_pay") == "on"
        await settings.set_billing(accounts, organization, can_pay, actor_of(request))
        return pages.redirect(address_of(_PROFILE, organization.name), "Saved.")

    async def rename(request: HubRequest, organization: Organization) -> Response:
        name = request.form_fields.get("name").strip()
        try:
            await settings.rename(accounts, organization, name, actor_of(request))
        except (FieldErrors, TooManyRequests) as error:
            return pages.show_errors(request, _TEMPLATE, error, "name", **values(organization, name=name))
        return pages.redirect(address_of(_PROFILE, name), f"Renamed to {name}.")

    def page(method: str, path: str, handler: Handler[Organization], action: Action, summary: str) -> Route:
        surface, cap = Surface.PAGE, 16 * KIB
        return organization_route(accounts, method, _ROOT + path, handler, surface, action, summary, body_cap=cap)

    return [
        page("GET", "", first, Action.ORG_READ_SETTINGS, "An organization's settings"),
        page("GET", "/profile", show, Action.ORG_READ_SETTINGS, "An organization's profile"),
        page("POST", "/profile", save, _CHANGE, "Change an organization's profile"),
        page("POST", "/billing", bill, _CHANGE, "Say whether a payment method is set up"),
        page("POST", "/rename", rename, _CHANGE, "Rename an organization"),
    ]
