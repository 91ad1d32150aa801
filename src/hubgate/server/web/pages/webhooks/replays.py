"""Replaying many deliveries of a webhook: choose, count, start, follow and cancel."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from hubgate.server.clock import DAY, SECOND
from hubgate.server.edge.routes import Route
from hubgate.server.errors import Conflict, FieldErrors, NotFound
from hubgate.server.http.forms import Fields
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.web.owner_routes import OwnerContext
from hubgate.server.web.pages.webhooks.page_context import ONE, WebhookPageContext
from hubgate.server.web.rendering import NO_ERRORS
from hubgate.server.webhooks.management.lifecycle import StoredWebhook
from hubgate.server.webhooks.management.validation import InvalidField
from hubgate.server.webhooks.model import DELIVERED, ENABLED, FAILED, SKIPPED, STORED, Webhook
from hubgate.server.webhooks.replaying import jobs
from hubgate.server.webhooks.replaying.model import (
    DEFAULT_RATE,
    DEFAULT_STATES,
    RUNNING,
    Replay,
    Selection,
    check_picked,
    check_rate,
    check_states,
    parse_since,
)

_ALL, _ONE = f"{ONE}/replays", f"{ONE}/replays/{{replay}}"
_DEFAULT_SPAN = DAY
# The states that the form offers, also for a webhook without a URL.
_STATES, _STATES_OF_PULL = (FAILED, SKIPPED, DELIVERED), (SKIPPED, STORED)


class _Choice(Struct, frozen=True):
    """The fields of the form, as texts."""

    since: str
    states: tuple[str, ...]
    rate: str

    def parse(self) -> tuple[Selection, int]:
        rate = check_rate(int(self.rate) if self.rate.isascii() and self.rate.isdigit() and len(self.rate) < 9 else 0)
        if not self.since:
            raise InvalidField("since", "Enter a time.")
        return Selection(parse_since(self.since), check_states(self.states)), rate


def routes(base: WebhookPageContext) -> list[Route]:
    webhooks = base.webhooks

    async def show(request: HubRequest, context: OwnerContext) -> Response:
        stored, query = await base.load(request, context), request.query_fields()
        return await show_form(request, context, stored, parse_choice(query, stored.webhook))

    async def show_form(
        request: HubRequest,
        context: OwnerContext,
        stored: StoredWebhook,
        choice: _Choice,
        errors: Mapping[str, str] = NO_ERRORS,
    ) -> Response:
        count = None
        if not errors:
            try:
                count = await jobs.count(webhooks, stored.webhook, choice.parse()[0])
            except FieldErrors as error:
                errors = error.fields
        replays = await jobs.latest(webhooks, stored.webhook)
        return base.show_one(
            request,
            context,
            stored,
            "replays.html",
            errors,
            choice=choice,
            states=_STATES if stored.webhook.url else _STATES_OF_PULL,
            count=count,
            replays=replays,
        )

    def parse_choice(fields: Fields, webhook: Webhook) -> _Choice:
        default = DEFAULT_STATES if webhook.url else _STATES_OF_PULL
        day_ago = datetime.fromtimestamp((webhooks.clock() - _DEFAULT_SPAN) // SECOND, UTC)
        is_sent = bool(fields.all("since"))
        return _Choice(
            fields.get("since", f"{day_ago:%Y-%m-%dT%H:%M}").strip(),
            tuple(fields.all("states")) if is_sent else default,
            fields.get("rate", str(DEFAULT_RATE)).strip(),
        )

    async def start(request: HubRequest, context: OwnerContext) -> Response:
        stored, form = await base.load(request, context), request.form_fields
        choice = parse_choice(form, stored.webhook)
        at, is_picked = context.address_of(stored.webhook.id), bool(form.get("picked"))
        try:
            selection, rate = (
                (Selection(picked=check_picked(form.all("delivery"))), DEFAULT_RATE) if is_picked else choice.parse()
            )
            started = await jobs.start(webhooks, context.owner, stored.webhook, selection, rate)
        except FieldErrors as error:
            if is_picked:
                return base.pages.redirect(at, "Nothing was replayed. Select the deliveries first.")
            return await show_form(request, context, stored, choice, error.fields)
        except (Conflict, NotFound) as error:
            return base.pages.redirect(at if is_picked else f"{at}/replays", f"Not started. {error.message}")
        return base.pages.redirect(f"{at}/replays/{started.id}")

    async def show_one(request: HubRequest, context: OwnerContext) -> Response:
        stored = await base.load(request, context)
        replay = await jobs.get(webhooks, stored.webhook, request.param("replay"))
        return base.show_one(request, context, stored, "replay.html", **_values(replay, stored))

    async def cancel(request: HubRequest, context: OwnerContext) -> Response:
        stored = await base.load(request, context)
        replay = await jobs.cancel(webhooks, context.owner, stored.webhook, request.param("replay"))
        at = context.address_of(stored.webhook.id)
        return base.pages.redirect(f"{at}/replays/{replay.id}", "Cancelled." if replay.state != RUNNING else "")

    return [
        *base.forms("GET", _ALL, show, "The form for replaying deliveries of a webhook, and its last replays"),
        *base.forms("POST", _ALL, start, "Replay many deliveries of a webhook"),
        *base.views(_ONE, show_one, "The progress of a replay"),
        *base.forms("POST", f"{_ONE}/cancel", cancel, "Cancel a replay"),
    ]


def _values(replay: Replay, stored: StoredWebhook) -> dict[str, Any]:
    left = replay.total - replay.sent
    return {
        "replay": replay,
        "left_seconds": -(-left // replay.rate) if replay.state == RUNNING else 0,
        "is_paused": stored.webhook.state == ENABLED and stored.webhook.failing_since is not None,
    }
