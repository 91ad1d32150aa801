"""A webhook's activity: its state, the list of deliveries, one delivery with its attempts, sending a test, replay."""

import json
import shlex
from typing import Any

from msgspec import Struct

from hubgate.server.edge.routes import Route
from hubgate.server.errors import Conflict, FieldErrors, Forbidden, NotFound
from hubgate.server.events.kinds import Kind
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.paging import PageRequest, decode_cursor, encode_cursor
from hubgate.server.web.owner_routes import OwnerContext
from hubgate.server.web.pages.listing import ROWS
from hubgate.server.web.pages.webhooks import charts
from hubgate.server.web.pages.webhooks.activity_filter import ANSWERS, TypedFilter
from hubgate.server.web.pages.webhooks.delivery_links import links_of
from hubgate.server.web.pages.webhooks.page_context import ONE, WebhookPageContext
from hubgate.server.web.untrusted_text import clean
from hubgate.server.webhooks.activity import delivery_log, replays
from hubgate.server.webhooks.activity.charts import SPANS, activity
from hubgate.server.webhooks.activity.delivery_log import FullDelivery
from hubgate.server.webhooks.activity.store import DeliveryFilter, LoggedDelivery
from hubgate.server.webhooks.management import activation
from hubgate.server.webhooks.management.lifecycle import StoredWebhook
from hubgate.server.webhooks.model import (
    ALIVE,
    DISABLED,
    FORBIDDEN,
    LOOP,
    PARKED,
    QUOTA,
    STATES,
    SUSPENDED,
    SUSPENDED_AFTER,
    Webhook,
)
from hubgate.server.webhooks.permissions import grants
from hubgate.server.webhooks.requests.outcome import NO_ANSWER

_DELIVERY = f"{ONE}/deliveries/{{delivery}}"
# How long to wait for the receiver's response to a test or a replay.
_WAIT_SECONDS = 3.0
_MAX_SHOWN = 16 * 1024
_OLDER, _NEWER = "older", "newer"
SCOPES = tuple(dict.fromkeys(kind.scope for kind in Kind))


class _Rows(Struct, frozen=True):
    items: list[LoggedDelivery]
    newer: str | None = None
    older: str | None = None


def routes(base: WebhookPageContext) -> list[Route]:
    webhooks = base.webhooks

    async def show_activity(request: HubRequest, context: OwnerContext) -> Response:
        stored, query = await base.load(request, context), request.query()
        at, webhook, typed = context.address_of(stored.webhook.id), stored.webhook, TypedFilter.of(query)
        span = charts.span_named(query.get("range", ""))
        values: dict[str, Any] = {
            "states": STATES,
            "scopes": SCOPES,
            "answers": ANSWERS,
            "typed": typed,
            "spans": SPANS,
            "drawn": charts.draw(await activity(webhooks, webhook, span)) if webhook.last_trigger_at else None,
            **await health(stored),
        }
        try:
            criteria = typed.criteria()
        except FieldErrors as error:
            empty = _list_values(at, TypedFilter(), _Rows([]), 0)
            return base.show_one(request, context, stored, "activity.html", error.fields, **empty, **values)
        cursor = query.get("cursor", "")
        rows = await page(webhook, criteria, cursor)
        count = await delivery_log.count(webhooks, webhook, criteria)
        listed = _list_values(at, typed, rows, count, is_live=not cursor)
        return base.show_one(request, context, stored, "activity.html", **listed, **values)

    async def show_rows(request: HubRequest, context: OwnerContext) -> Response:
        """The first rows of the list, for the script that updates it."""
        stored = await base.load(request, context)
        rows = await page(stored.webhook, TypedFilter.of(request.query()).criteria(), "")
        return base.show_one(request, context, stored, "new_rows.html", rows=rows.items)

    async def health(stored: StoredWebhook) -> dict[str, Any]:
        """The state of the webhook, for the banner."""
        webhook, now = stored.webhook, webhooks.clock()
        since, suspended = webhook.failing_since, webhook.suspended_at
        return {
            "has_grant_ended": suspended is not None and await grants.has_grant_ended(webhooks, webhook),
            "missed": await activation.count_missed(webhooks, webhook),
            # Suspended at once because the receiver answered 410 (gone).
            "is_gone": suspended is not None and since is not None and suspended - since < SUSPENDED_AFTER,
            # Only a failed attempt suspends a webhook, so this time may be in the past; then it is not shown.
            "suspension": None if since is None or since + SUSPENDED_AFTER <= now else since + SUSPENDED_AFTER,
            "paused_until": webhook.closed_until if webhook.closed_until > now else None,
        }

    async def page(webhook: Webhook, criteria: DeliveryFilter, cursor: str) -> _Rows:
        direction, position = decode_cursor(cursor, (str, int)) if cursor else (_OLDER, None)
        if direction == _NEWER and isinstance(position, int):
            found = await delivery_log.newer(webhooks, webhook, criteria, position, ROWS + 1)
            if len(found) > ROWS:
                items = found[1:]
                return _Rows(items, _cursor(_NEWER, items[0]), _cursor(_OLDER, items[-1]))
            # The newest deliveries are reached: show a full page, including deliveries added since then.
            position = None
        request = PageRequest(ROWS, None if position is None else (position,))
        older = await delivery_log.page(webhooks, webhook, criteria, request)
        newer = _cursor(_NEWER, older.items[0]) if position is not None and older.items else None
        return _Rows(older.items, newer, _cursor(_OLDER, older.items[-1]) if older.next_cursor else None)

    async def delivery(request: HubRequest, context: OwnerContext) -> Response:
        stored = await base.load(request, context)
        full = await delivery_log.one(webhooks, stored.webhook, request.param("delivery"))
        return base.show_one(
            request,
            context,
            stored,
            "delivery.html",
            full=full,
            logged=full.logged,
            tries=[_attempt_values(row) for row in full.attempts],
            reason=_reason(full.logged, stored.webhook, webhooks.quota),
            next_at=full.logged.due_at if full.logged.state in ALIVE else None,
            payload=_payload_view(full.payload),
            curl=_curl(full),
            links=links_of(full),
        )

    async def payload(request: HubRequest, context: OwnerContext) -> Response:
        stored = await base.load(request, context)
        full = await delivery_log.one(webhooks, stored.webhook, request.param("delivery"))
        if full.payload is None:
            raise NotFound("No payload: it was deleted, or you may no longer read it.")
        name = f"attachment; filename={full.logged.id}.json"
        return Response(full.payload, media_type="application/json", headers={"content-disposition": name})

    async def replay(request: HubRequest, context: OwnerContext) -> Response:
        stored, repeated = await base.load(request, context), request.param("delivery")
        try:
            new = await replays.replay(webhooks, stored.webhook, repeated)
        except (Conflict, Forbidden) as error:
            return base.pages.redirect(
                f"{context.address_of(stored.webhook.id)}/deliveries/{repeated}", f"Not sent. {error.message}"
            )
        return await show_delivery(context, stored, new, "Replayed")

    async def test(request: HubRequest, context: OwnerContext) -> Response:
        stored = await base.load(request, context)
        try:
            new = await replays.queue_test(webhooks, stored)
        except Conflict as error:
            return base.pages.redirect(context.address_of(stored.webhook.id), f"Not sent. {error.message}")
        return await show_delivery(context, stored, new, "Sent a test" if stored.webhook.url else "Stored a test")

    async def show_delivery(context: OwnerContext, stored: StoredWebhook, new: str, done: str) -> Response:
        logged = await replays.await_result(webhooks, stored.webhook, new, _WAIT_SECONDS)
        return base.pages.redirect(
            f"{context.address_of(stored.webhook.id)}/deliveries/{new}", f"{done}. {_outcome(logged)}".strip()
        )

    return [
        *base.views(ONE, show_activity, "Deliveries of a webhook"),
        *base.views(f"{ONE}/rows", show_rows, "The newest deliveries of a webhook, for its list"),
        *base.views(_DELIVERY, delivery, "One delivery of a webhook"),
        *base.views(f"{_DELIVERY}/payload", payload, "The payload of a delivery, as a download"),
        *base.forms("POST", f"{_DELIVERY}/replay", replay, "Send a delivery again"),
        *base.forms("POST", f"{ONE}/test", test, "Send a test to a webhook"),
    ]


def _cursor(direction: str, logged: LoggedDelivery) -> str:
    return encode_cursor((direction, logged.seq))


def _list_values(at: str, typed: TypedFilter, rows: _Rows, count: int, *, is_live: bool = False) -> dict[str, Any]:
    return {
        "rows": rows.items,
        "count": count,
        "chips": typed.chips(at),
        "newer": typed.address(at, rows.newer) if rows.newer else "",
        "older": typed.address(at, rows.older) if rows.older else "",
        "is_live": is_live,
        "live_address": typed.address(f"{at}/rows"),
        "row_limit": ROWS,
    }


def _outcome(logged: LoggedDelivery | None) -> str:
    if logged is not None and logged.state == PARKED and logged.attempts == 0:
        return "The delivery is waiting because the webhook is paused after failures. A successful test ends the pause."
    if logged is None or (logged.attempts == 0 and logged.state in ALIVE):
        return "The delivery is being sent. Reload to see the result."
    if logged.attempts == 0:
        return ""
    return NO_ANSWER if logged.status is None else f"The receiver answered {logged.status}."


def _attempt_values(row: Any) -> dict[str, Any]:
    return {
        "number": row["number"],
        "at": row["at"],
        "status": row["status"],
        "duration_ms": row["duration_ms"],
        "error": row["error"],
        "ok": row["status"] is not None and 200 <= row["status"] < 300,
        # Shown as text, regardless of its content type (attack W34).
        "response": _clean_response(bytes(row["response"]).decode("utf-8", "replace")),
    }


def _clean_response(text: str) -> str:
    return "\n".join(clean(line.expandtabs(4)) for line in text.splitlines())


def _reason(logged: LoggedDelivery, webhook: Webhook, quota: int) -> str:
    owner = "The organization" if webhook.org_id else "You"
    return {
        QUOTA: f"Over the quota of {quota:,} triggers in 24 hours. You can replay this delivery.",
        DISABLED: "The webhook was disabled.",
        SUSPENDED: "The webhook was suspended.",
        FORBIDDEN: f"{owner} may no longer read this repo.",
        LOOP: "Skipped to stop a loop: five times in a row, a receiver reacted to an event with another change.",
    }.get(logged.reason, logged.reason)


def _payload_view(payload: bytes | None) -> dict[str, Any] | None:
    if payload is None:
        return None
    text = json.dumps(json.loads(payload), indent=2, ensure_ascii=False)
    return {"text": "\n".join(map(clean, text[:_MAX_SHOWN].splitlines())), "is_cut": len(text) > _MAX_SHOWN}


def _curl(full: FullDelivery) -> str:
    """A curl command that repeats the last request, without the secret."""
    if full.request.url is None or full.payload is None:
        return ""
    headers = [(name, value) for name, value in full.request.headers.items() if value != delivery_log.MASK]
    lines = [f"curl {shlex.quote(full.request.url)}"]
    lines += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in headers]
    return " \\\n  ".join([*lines, f"--data-binary @{full.logged.id}.json"])
