"""`/api/settings/webhooks/{id}/replays`: replays of many deliveries, for users and for organizations."""

from typing import Any

import msgspec

from hubgate.server.access.visibility import VisibleRepos, visible_repos
from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.routes import KIB, Handler, Route
from hubgate.server.errors import Forbidden
from hubgate.server.http.asgi import ASGIApp
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.web.api.answers import NO_TOKEN
from hubgate.server.web.owner_routes import WEBHOOKS, OwnerContext
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.management import lifecycle
from hubgate.server.webhooks.management.lifecycle import StoredWebhook
from hubgate.server.webhooks.management.validation import InvalidField
from hubgate.server.webhooks.permissions.grants import grant_of
from hubgate.server.webhooks.replaying import jobs
from hubgate.server.webhooks.replaying.model import (
    DEFAULT_RATE,
    DEFAULT_STATES,
    Replay,
    Selection,
    check_picked,
    check_rate,
    check_states,
    parse_since,
)

_ALL, _ONE = "/{id}/replays", "/{id}/replays/{replay}"


class NewReplay(msgspec.Struct, forbid_unknown_fields=True):
    """Which deliveries to send again: those since a time that failed or were skipped, or these ids."""

    since: str | None = None
    states: list[str] | None = None
    deliveries: list[str] | None = None
    rate: int = DEFAULT_RATE


class ReplayJson(msgspec.Struct):
    """A replay. `state` is running, done or cancelled; `done` is the number of deliveries sent so far."""

    id: str
    total: int
    done: int
    state: str


def routes(webhooks: Webhooks, accounts: Accounts) -> list[Route]:
    api = _Api(webhooks)
    return [*_routes(api, None), *_routes(api, accounts)]


class _Api:
    def __init__(self, webhooks: Webhooks) -> None:
        self._webhooks = webhooks

    async def start(self, request: HubRequest, context: OwnerContext) -> ASGIApp:
        stored, visible = await self._with_visible_repos(request, context)
        given = await request.read_json(NewReplay)
        selection = _selection(given, visible)
        rate = check_rate(given.rate)
        started = await jobs.start(self._webhooks, context.owner, stored.webhook, selection, rate)
        return JsonResponse(_shape(started), status_code=202)

    async def list_latest(self, request: HubRequest, context: OwnerContext) -> ASGIApp:
        stored, visible = await self._with_visible_repos(request, context)
        return JsonResponse([_shape(replay) for replay in await jobs.latest(self._webhooks, stored.webhook, visible)])

    async def get_one(self, request: HubRequest, context: OwnerContext) -> ASGIApp:
        stored, visible = await self._with_visible_repos(request, context)
        return JsonResponse(_shape(await jobs.get(self._webhooks, stored.webhook, request.param("replay"), visible)))

    async def cancel(self, request: HubRequest, context: OwnerContext) -> ASGIApp:
        stored, visible = await self._with_visible_repos(request, context)
        cancelled = await jobs.cancel(self._webhooks, context.owner, stored.webhook, request.param("replay"), visible)
        return JsonResponse(_shape(cancelled))

    async def _with_visible_repos(
        self, request: HubRequest, context: OwnerContext
    ) -> tuple[StoredWebhook, VisibleRepos | None]:
        """Return the webhook, and the repos whose deliveries the caller may replay. The number of deliveries reveals
        activity, so an app may replay many only of webhooks that it created.
        """
        stored = await lifecycle.get(self._webhooks, context.owner, request.param("id"))
        grant = grant_of(self._webhooks, context.identity)
        if grant is None:
            return stored, None
        if not grant.manages(stored.webhook):
            raise Forbidden(f"This {grant.noun} did not create this webhook, so it cannot replay its deliveries.")
        return stored, visible_repos(context.identity)


def _selection(given: NewReplay, visible: VisibleRepos | None) -> Selection:
    if given.deliveries is not None:
        if given.since is not None or given.states is not None:
            raise InvalidField("deliveries", "Send either deliveries, or since and states.")
        return Selection(picked=check_picked(given.deliveries), visible=visible)
    if given.since is None:
        raise InvalidField("since", "Send a time, or deliveries.")
    states = check_states(DEFAULT_STATES if given.states is None else given.states)
    return Selection(parse_since(given.since), states, visible=visible)


def _shape(replay: Replay) -> ReplayJson:
    return ReplayJson(replay.id, replay.total, replay.sent, replay.state)


def _routes(api: _Api, accounts: Accounts | None) -> list[Route]:
    whose = "your" if accounts is None else "an organization's"
    refusals = {
        **NO_TOKEN,
        403: ("The token lacks the webhooks scope, or you are not an admin of the organization.", None),
        404: ("Webhook, delivery or replay not found, or it belongs to someone else.", None),
    }
    started = {
        202: ("The replay. It continues in the background, also after a restart of the hub.", ReplayJson),
        **refusals,
        409: ("The webhook is disabled or suspended, or too many replays are running.", None),
        422: ("A field is invalid; error names it.", None),
    }

    def route(
        method: str, path: str, handler: Handler[OwnerContext], summary: str, answers: dict[int, Any], **more: Any
    ) -> Route:
        more |= {"answers": answers, "body_cap": 64 * KIB}
        return WEBHOOKS.route(accounts, method, path, handler, Surface.API, summary, **more)

    one = {200: ("The replay.", ReplayJson), **refusals}
    latest = {200: (f"The last {jobs.LATEST}, newest first.", list[ReplayJson]), **refusals}
    return [
        route("POST", _ALL, api.start, f"Send many deliveries of {whose} webhook again", started, body=NewReplay),
        route("GET", _ALL, api.list_latest, f"Replays of one of {whose} webhooks", latest),
        route("GET", _ONE, api.get_one, f"The progress of a replay of one of {whose} webhooks", one),
        route("DELETE", _ONE, api.cancel, f"Cancel a replay of one of {whose} webhooks", one),
    ]
