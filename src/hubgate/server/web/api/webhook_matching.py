"""Dry runs of webhooks, and why a webhook did not get an event, for the caller's webhooks and an organization's."""

from typing import Any

import msgspec

from hubgate.server.access.visibility import visible_repos
from hubgate.server.accounts.context import Accounts
from hubgate.server.clock import iso
from hubgate.server.edge.routes import KIB, Query, Route
from hubgate.server.http.asgi import ASGIApp
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.jobs.caller import mark_read_only
from hubgate.server.web.api import webhook_shapes as shapes
from hubgate.server.web.api.answers import NO_TOKEN
from hubgate.server.web.owner_routes import WEBHOOKS, OwnerContext
from hubgate.server.webhooks.activity.visibility import visible_deliveries
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.management import lifecycle
from hubgate.server.webhooks.matching import dry_run, why_not
from hubgate.server.webhooks.matching.dry_run import DryRun
from hubgate.server.webhooks.permissions.grants import grant_of

_REFUSALS = {**NO_TOKEN, 403: ("The token lacks the webhooks scope, or you are not an admin.", None)}
_INVALID = {422: ("A field is invalid; error names it.", None)}
_EVENT = Query("event", "The id of an event.", required=True)


class EventKind(msgspec.Struct):
    action: str
    scope: str


class MatchedEvent(msgspec.Struct):
    id: str
    event: EventKind
    repo: shapes.Watched
    at: str


class DryRunResult(msgspec.Struct):
    """The events of the last seven days that the webhook would have received, newest first, at most 1,000."""

    total: int
    events: list[MatchedEvent]


class WhyNotResult(msgspec.Struct):
    """`outcome` is delivered, pending or not_sent. `rule` is null if the event was delivered."""

    event: str
    outcome: str
    rule: str | None
    text: str


class _Api:
    def __init__(self, webhooks: Webhooks) -> None:
        self._webhooks = webhooks

    async def dry_run_new(self, request: HubRequest, context: OwnerContext) -> ASGIApp:
        settings = shapes.parse_settings(await request.read_json(shapes.NewWebhook))
        mark_read_only()
        grant = grant_of(self._webhooks, context.identity)
        return _answer(await dry_run.of_new(self._webhooks, context.owner, settings, grant))

    async def dry_run_update(self, request: HubRequest, context: OwnerContext) -> ASGIApp:
        settings = shapes.parse_settings(await request.read_json(shapes.WebhookChanges))
        mark_read_only()
        stored = await lifecycle.get(self._webhooks, context.owner, request.param("id"))
        grant = grant_of(self._webhooks, context.identity)
        return _answer(await dry_run.of_update(self._webhooks, stored, settings, grant))

    async def why_not(self, request: HubRequest, context: OwnerContext) -> ASGIApp:
        stored = await lifecycle.get(self._webhooks, context.owner, request.param("id"))
        identity, event_id = context.identity, request.query().get("event", "")
        visible = visible_deliveries(self._webhooks, identity, stored.webhook) or visible_repos(identity)
        found = await why_not.explain(self._webhooks, stored.webhook, event_id, visible)
        return JsonResponse(WhyNotResult(found.event.id, found.outcome, found.rule, found.text))


def _answer(result: DryRun) -> ASGIApp:
    events = [
        MatchedEvent(
            event.id,
            EventKind(event.action, event.scope),
            shapes.Watched(event.repo_type, event.repo_name or ""),
            iso(event.created_at),
        )
        for event in result.events
    ]
    return JsonResponse(DryRunResult(len(events), events))


def routes(webhooks: Webhooks, accounts: Accounts) -> list[Route]:
    api = _Api(webhooks)
    return [*_routes(api, None), *_routes(api, accounts)]


def _routes(api: _Api, accounts: Accounts | None) -> list[Route]:
    whose = "your" if accounts is None else "an organization's"
    not_found = {404: ("Webhook or event not found, or you cannot see it.", None)}

    def route(method: str, path: str, handler: Any, summary: str, **more: Any) -> Route:
        return WEBHOOKS.route(accounts, method, path, handler, Surface.API, summary, body_cap=64 * KIB, **more)

    matched = {200: ("The matching events. Nothing is sent or stored.", DryRunResult), **_REFUSALS, **_INVALID}
    return [
        route(
            "POST",
            "/dry-run",
            api.dry_run_new,
            f"Events that a new webhook among {whose} would have received",
            answers=matched,
            body=shapes.NewWebhook,
        ),
        route(
            "POST",
            "/{id}/dry-run",
            api.dry_run_update,
            f"Events that one of {whose} webhooks would have received after a change",
            answers={**matched, **not_found},
            body=shapes.WebhookChanges,
        ),
        route(
            "GET",
            "/{id}/why-not",
            api.why_not,
            f"Why an event was not sent by one of {whose} webhooks",
            answers={200: ("What became of the event.", WhyNotResult), **_REFUSALS, **not_found},
            query=(_EVENT,),
        ),
    ]
