"""The operator's pages: overview, users, organizations, requests from app owners.

The operator flag grants access only to these pages, and tokens cannot access them.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of, caller_of
from hubgate.server.accounts import operator_actions
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.limits import RESET_MAILS_BY_OPERATOR
from hubgate.server.accounts.model import PLANS, User
from hubgate.server.accounts.organizations import settings
from hubgate.server.edge.routes import KIB, THE_HUB, Endpoint, PublicHandler, Route, without_subject
from hubgate.server.errors import Conflict, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.jobs.heartbeats import Heartbeats
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.operator_requests import decision
from hubgate.server.web.account_paths import organization_named, user_named
from hubgate.server.web.pages.listing import ListQuery, return_address
from hubgate.server.web.rendering import Pages
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.insight.overview import read_overview

_OVERVIEW, _USERS = "/operator", "/operator/users"
# Failing hosts that the overview lists.
_HOSTS = 10
_ORGANIZATIONS, _REQUESTS = "/operator/organizations", "/operator/requests"

# The effect of a button on a user; returns the message to show.
_ButtonAction = Callable[[HubRequest, User], Awaitable[str]]


def routes(pages: Pages, accounts: Accounts, oauth: OAuth, webhooks: Webhooks, heartbeats: Heartbeats) -> list[Route]:
    async def overview(request: HubRequest) -> Response:
        return pages.page(
            request,
            "operator/overview.html",
            section=_OVERVIEW,
            counts=await operator_actions.count_accounts(accounts),
            waiting_requests=await decision.count_pending(oauth),
            deliveries=await read_overview(webhooks.db, webhooks.clock, heartbeats),
            hosts_shown=_HOSTS,
        )

    return [
        operator_route("GET", _OVERVIEW, overview, "Overview of the hub"),
        *_user_routes(pages, accounts),
        *_organization_routes(pages, accounts),
        *_request_routes(pages, oauth),
    ]


def _user_routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(request: HubRequest) -> Response:
        query = ListQuery(request.query(), _USERS)
        found = await operator_actions.list_users(accounts, query.page(operator_actions.CURSOR), query.search)
        return pages.page(
            request,
            "operator/users.html",
            section=_USERS,
            users=found.items,
            **query.template_values(found.next_cursor),
        )

    async def verify(_: HubRequest, user: User) -> str:
        await operator_actions.verify(accounts, user)
        return f"{user.email} is now verified."

    async def disable(request: HubRequest, user: User) -> str:
        if user.id == caller_of(request).user.id:
            raise Conflict("You cannot disable your own account. Another operator can.")
        await operator_actions.disable(accounts, user, actor_of(request))
        return f"Disabled {user.name}. Sessions and tokens no longer work."

    async def enable(_: HubRequest, user: User) -> str:
        await operator_actions.enable(accounts, user)
        return f"Enabled {user.name}."

    async def reset(_: HubRequest, user: User) -> str:
        await accounts.limiter.take(RESET_MAILS_BY_OPERATOR, user.email)
        await operator_actions.send_reset(accounts, user)
        return f"A reset link is on its way to {user.email}."

    def button(act: _ButtonAction) -> PublicHandler:
        async def press(request: HubRequest) -> Response:
            user = await user_named(accounts, request.param("user"))
            return pages.redirect(return_address(request, _USERS), await act(request, user))

        return press

    one = _USERS + "/{user}"
    return [
        operator_route("GET", _USERS, show, "All users"),
        operator_route("POST", one + "/verify", button(verify), "Mark a user's e-mail address as verified"),
        operator_route("POST", one + "/disable", button(disable), "Disable an account"),
        operator_route("POST", one + "/enable", button(enable), "Enable an account"),
        operator_route("POST", one + "/reset", button(reset), "Mail a reset link"),
    ]


def _organization_routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(request: HubRequest) -> Response:
        query = ListQuery(request.query(), _ORGANIZATIONS)
        found = await operator_actions.list_organizations(accounts, query.page(operator_actions.CURSOR), query.search)
        return pages.page(
            request,
            "operator/organizations.html",
            section=_ORGANIZATIONS,
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
        return pages.redirect(return_address(request, _ORGANIZATIONS), f"Saved {organization.name}.")

    return [
        operator_route("GET", _ORGANIZATIONS, show, "All organizations"),
        operator_route("POST", _ORGANIZATIONS + "/{name}", save, "Set an organization's plan and billing"),
    ]


def _request_routes(pages: Pages, oauth: OAuth) -> list[Route]:
    """Requests from app owners, which the operator grants or refuses."""

    async def values() -> dict[str, Any]:
        return {"section": _REQUESTS, "requests": await decision.list_all(oauth)}

    async def show(request: HubRequest) -> Response:
        return pages.page(request, "operator/requests.html", **await values())

    def decision_handler(granted: bool) -> PublicHandler:
        async def decide(request: HubRequest) -> Response:
            app_request = await decision.get(oauth, request.param("id"))
            try:
                await decision.decide(oauth, app_request, granted, actor_of(request))
            except (Conflict, Unprocessable) as error:
                return pages.show_errors(
                    request, "operator/requests.html", error, f"request-{app_request.id}", **await values()
                )
            word = "Granted" if granted else "Refused"
            return pages.redirect(_REQUESTS, f"{word}: {app_request.description} for {app_request.app_name}.")

        return decide

    return [
        operator_route("GET", _REQUESTS, show, "Requests from app owners"),
        operator_route("POST", _REQUESTS + "/{id}/grant", decision_handler(True), "Grant a request"),
        operator_route("POST", _REQUESTS + "/{id}/refuse", decision_handler(False), "Refuse a request"),
    ]


def operator_route(method: str, path: str, handler: PublicHandler, summary: str) -> Route:
    """A route that only operators may use."""
    endpoint = Endpoint(Action.OPERATOR_USE, THE_HUB, without_subject(handler))
    return Route(method, path, endpoint, Surface.PAGE, summary, body_cap=16 * KIB)
