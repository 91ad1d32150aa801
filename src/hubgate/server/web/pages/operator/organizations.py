"""All organizations, for the operator: plan and billing flag."""

from starlette.responses import Response

from hubgate.server.access.caller import actor_of
from hubgate.server.accounts import operator_lists
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import PLANS
from hubgate.server.accounts.organizations import settings
from hubgate.server.edge.routes import Route
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.web.named import organization_named
from hubgate.server.web.pages.listing import ListQuery, return_address
from hubgate.server.web.pages.operator.route import operator_route
from hubgate.server.web.rendering import Pages

_PATH = "/operator/organizations"
_ONE = _PATH + "/{name}"


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(request: HubRequest) -> Response:
        asked = ListQuery(request.query(), _PATH)
        found = await operator_lists.organizations(accounts, asked.page(operator_lists.CURSOR), asked.search)
        return pages.page(
            request,
            "operator/organizations.html",
            section=_PATH,
            organizations=found.items,
            plans=PLANS,
            **asked.shown(found.next_cursor),
        )

    async def save(request: HubRequest) -> Response:
        organization = await organization_named(accounts, request, Surface.PAGE)
        given, actor = request.form_fields, actor_of(request)
        plan, can_pay = given.get("plan"), given.get("can_pay")
        # Only fields changed on this form are saved: others may have changed since the list was shown.
        if plan != given.get("had_plan"):
            await settings.set_plan(accounts, organization, plan, actor)
        if can_pay != given.get("could_pay"):
            await settings.set_billing_by_operator(accounts, organization, can_pay == "on", actor)
        return pages.redirect(return_address(request, _PATH), f"Saved {organization.name}.")

    return [
        operator_route("GET", _PATH, show, "Every organization"),
        operator_route("POST", _ONE, save, "Set an organization's plan"),
    ]
