"""`/operator/organizations`: all organizations, their plans and billing."""

from hubgate.server.access.caller import actor_of
from hubgate.server.accounts import operator_actions
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import PLANS
from hubgate.server.accounts.organizations import settings
from hubgate.server.edge.routes import Route
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.web.account_paths import organization_named
from hubgate.server.web.pages.listing import ListQuery, return_address
from hubgate.server.web.pages.operator.frame import OperatorPages, operator_route

_PATH = "/operator/organizations"


def routes(frame: OperatorPages, accounts: Accounts) -> list[Route]:
    async def show(request: HubRequest) -> Response:
        query = ListQuery(request.query(), _PATH)
        found = await operator_actions.list_organizations(accounts, query.page(operator_actions.CURSOR), query.search)
        return await frame.page(
            request,
            "organizations.html",
            _PATH,
            organizations=found.items,
            plans=PLANS,
            **query.template_values(found.next_cursor),
        )

    async def save(request: HubRequest) -> Response:
        organization = await organization_named(accounts, request, Surface.PAGE)
        form, actor = request.form_fields, actor_of(request)
        plan, can_pay = form.get("plan"), form.get("can_pay")
        # Only fields changed on this form are saved: others may have changed since the list was shown.
        if plan != form.get("had_plan"):
            await settings.set_plan(accounts, organization, plan, actor)
        if can_pay != form.get("could_pay"):
            await settings.set_billing_by_operator(accounts, organization, can_pay == "on", actor)
        return frame.pages.redirect(return_address(request, _PATH), f"Saved {organization.name}.")

    return [
        operator_route("GET", _PATH, show, "All organizations"),
        operator_route("POST", _PATH + "/{name}", save, "Set an organization's plan and billing"),
    ]
