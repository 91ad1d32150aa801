"""`/api/settings/webhooks`: the caller's webhooks and, under an organization, those of the organization."""

from typing import Any

from msgspec import UNSET

from hubgate.server.access.visibility import VisibleRepos, visible_repos
from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.routes import KIB, Handler, Query, Route
from hubgate.server.http.asgi import ASGIApp
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.paging import parse_page
from hubgate.server.web.api import webhook_shapes as shapes
from hubgate.server.web.api.answers import NO_TOKEN
from hubgate.server.web.api.listing import PAGING, page_response
from hubgate.server.web.owner_routes import WEBHOOKS, OwnerContext
from hubgate.server.webhooks.activity import delivery_log, replays
from hubgate.server.webhooks.activity.store import DeliveryFilter
from hubgate.server.webhooks.activity.visibility import visible_deliveries
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.management import activation, lifecycle
from hubgate.server.webhooks.management.lifecycle import StoredWebhook
from hubgate.server.webhooks.model import STATES
from hubgate.server.webhooks.permissions.grants import grant_of
from hubgate.server.webhooks.retention import deletion

_ONE = "/{id}"
_REFUSALS = {
    **NO_TOKEN,
    403: ("The token lacks the webhooks scope, or you are not an admin of the organization.", None),
}
_NOT_FOUND = {**_REFUSALS, 404: ("Webhook not found, or it belongs to someone else.", None)}
_INVALID = {422: ("A field is invalid; error names it.", None)}
_FILTERS = (
    Query("state", f"One of {', '.join(STATES)}."),
    Query("repo", "The name of a repo, with its namespace."),
    Query("scope", "The scope of an event, such as repo.content."),
)


def routes(webhooks: Webhooks, accounts: Accounts) -> list[Route]:
    api = _Api(webhooks)
    return [*_routes(api, None), *_routes(api, accounts)]


class _Api:
    def __init__(self, webhooks: Webhooks) -> None:
        self._webhooks = webhooks

    async def list_all(self, _: HubRequest, context: OwnerContext) -> ASGIApp:
        found = await self._visible_to_caller(await lifecycle.list_webhooks(self._webhooks, context.owner), context)
        return JsonResponse([shapes.webhook_json(stored) for stored in found])

    async def create(self, request: HubRequest, context: OwnerContext) -> ASGIApp:
        settings = shapes.parse_settings(await request.read_json(shapes.NewWebhook))
        grant = grant_of(self._webhooks, context.identity)
        stored = await lifecycle.create(self._webhooks, context.owner, settings, context.actor, grant=grant)
        return _wrapped(stored, settings.secret)

    async def get_one(self, request: HubRequest, context: OwnerContext) -> ASGIApp:
        (shown,) = await self._visible_to_caller([await self._stored(request, context)], context)
        return _wrapped(shown)

    async def update(self, request: HubRequest, context: OwnerContext) -> ASGIApp:
        settings = shapes.parse_settings(await request.read_json(shapes.WebhookChanges))
        grant, webhook_id = grant_of(self._webhooks, context.identity), request.param("id")
        stored = await lifecycle.update(self._webhooks, context.owner, webhook_id, settings, context.actor, grant=grant)
        return _wrapped(stored, settings.secret)

    async def enable(self, request: HubRequest, context: OwnerContext) -> ASGIApp:
        return await self._switch(request, context, on=True)

    async def disable(self, request: HubRequest, context: OwnerContext) -> ASGIApp:
        return await self._switch(request, context, on=False)

    async def delete(self, request: HubRequest, context: OwnerContext) -> ASGIApp:
        await deletion.delete(self._webhooks, context.owner, request.param("id"), context.actor)
        return JsonResponse({})

    async def logs(self, request: HubRequest, context: OwnerContext) -> ASGIApp:
        (stored, visible), query = await self._with_visible_repos(request, context), request.query()
        state, repo, scope = (query.get(name, "") for name in ("state", "repo", "scope"))
        criteria = delivery_log.check_filter(DeliveryFilter(state, repo, scope, visible=visible))
        page_request = parse_page(query, delivery_log.CURSOR)
        found = await delivery_log.page(self._webhooks, stored.webhook, criteria, page_request)
        return page_response(request, self._webhooks.base_url, found, shapes.delivery_json)

    async def log(self, request: HubRequest, context: OwnerContext) -> ASGIApp:
        stored, visible = await self._with_visible_repos(request, context)
        full = await delivery_log.one(self._webhooks, stored.webhook, request.param("delivery"), visible)
        return JsonResponse(shapes.full_delivery_json(full))

    async def replay(self, request: HubRequest, context: OwnerContext) -> ASGIApp:
        stored, grant = await self._stored(request, context), grant_of(self._webhooks, context.identity)
        # An app may replay any delivery of a webhook that it did not create: the app learns nothing from that.
        visible = visible_repos(context.identity) if grant and grant.manages(stored.webhook) else None
        new = await replays.replay(self._webhooks, stored.webhook, request.param("delivery"), visible)
        return await self._await_delivery(stored, new)

    async def test(self, request: HubRequest, context: OwnerContext) -> ASGIApp:
        stored = await self._stored(request, context)
        return await self._await_delivery(stored, await replays.queue_test(self._webhooks, stored))

    async def _await_delivery(self, stored: StoredWebhook, delivery_id: str) -> ASGIApp:
        logged = await replays.await_result(self._webhooks, stored.webhook, delivery_id)
        return JsonResponse(shapes.DeliveryResult(logged.status if logged else None, delivery_id))

    async def _switch(self, request: HubRequest, context: OwnerContext, *, on: bool) -> ASGIApp:
        stored = await activation.switch(self._webhooks, context.owner, request.param("id"), context.actor, on=on)
        (shown,) = await self._visible_to_caller([stored], context)
        return _wrapped(shown)

    async def _stored(self, request: HubRequest, context: OwnerContext) -> StoredWebhook:
        return await lifecycle.get(self._webhooks, context.owner, request.param("id"))

    async def _with_visible_repos(
        self, request: HubRequest, context: OwnerContext
    ) -> tuple[StoredWebhook, VisibleRepos | None]:
        """Return the webhook, and the repos whose deliveries the caller may read."""
        stored = await self._stored(request, context)
        return stored, visible_deliveries(self._webhooks, context.identity, stored.webhook)

    async def _visible_to_caller(self, found: list[StoredWebhook], context: OwnerContext) -> list[StoredWebhook]:
        grant = grant_of(self._webhooks, context.identity)
        return found if grant is None else await lifecycle.shown_to_app(self._webhooks, found, grant)


def _wrapped(stored: StoredWebhook, secret: str | None = None) -> ASGIApp:
    """Respond with one webhook. `secret` is the secret that the request set, if any."""
    return JsonResponse(shapes.OneWebhook(shapes.webhook_json(stored, secret or UNSET)))


def _routes(api: _Api, accounts: Accounts | None) -> list[Route]:
    whose = "your" if accounts is None else "an organization's"
    for_organization = "" if accounts is None else " of an organization"

    def route(
        method: str, path: str, handler: Handler[OwnerContext], summary: str, answers: dict[int, Any], **more: Any
    ) -> Route:
        more |= {"answers": answers, "body_cap": 64 * KIB}
        return WEBHOOKS.route(accounts, method, path, handler, Surface.API, summary, **more)

    wrapped = {200: ("The webhook.", shapes.OneWebhook), **_NOT_FOUND}
    sent = {
        200: ("The status of the receiver's response, if it responded within 20 s.", shapes.DeliveryResult),
        **_NOT_FOUND,
        409: ("The webhook is disabled or suspended.", None),
    }
    listed_answers = {200: ("Oldest first.", shapes.WebhookList), **_REFUSALS}
    created = {200: ("The webhook.", shapes.OneWebhook), **_REFUSALS, **_INVALID}
    return [
        route("GET", "", api.list_all, f"List {whose} webhooks", listed_answers),
        route("POST", "", api.create, f"Create a webhook{for_organization}", created, body=shapes.NewWebhook),
        route("GET", _ONE, api.get_one, f"One of {whose} webhooks", wrapped),
        route(
            "POST",
            _ONE,
            api.update,
            f"Change one of {whose} webhooks",
            {**wrapped, **_INVALID},
            body=shapes.WebhookChanges,
        ),
        route("POST", f"{_ONE}/enable", api.enable, f"Enable one of {whose} webhooks", wrapped),
        route("POST", f"{_ONE}/disable", api.disable, f"Disable one of {whose} webhooks", wrapped),
        route("DELETE", _ONE, api.delete, f"Delete one of {whose} webhooks", {200: ("Deleted.", None), **_NOT_FOUND}),
        route("POST", f"{_ONE}/test", api.test, f"Send a test to one of {whose} webhooks", sent),
        route(
            "GET",
            f"{_ONE}/logs",
            api.logs,
            f"Deliveries of one of {whose} webhooks",
            {200: ("Newest first.", list[dict[str, Any]]), **_NOT_FOUND},
            query=(*_FILTERS, *PAGING),
        ),
        route(
            "GET",
            f"{_ONE}/logs/{{delivery}}",
            api.log,
            f"One delivery of one of {whose} webhooks",
            {200: ("The delivery with its payload and attempts.", dict[str, Any]), **_NOT_FOUND},
        ),
        route("POST", f"{_ONE}/replay/{{delivery}}", api.replay, f"Send a delivery of {whose} webhook again", sent),
    ]
