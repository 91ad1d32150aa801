"""Why a webhook did not get an event: the rule that stopped it, or what happened to its delivery."""

import msgspec
from msgspec import Struct

from hubgate.server.access.visibility import VisibleRepos
from hubgate.server.clock import iso
from hubgate.server.errors import NotFound
from hubgate.server.events.payload import EventNames
from hubgate.server.ids import is_id
from hubgate.server.storage.database import Row, Tx
from hubgate.server.webhooks.activity import store as activity
from hubgate.server.webhooks.activity.store import LoggedDelivery
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.fanout.store import CLOCK_TOLERANCE
from hubgate.server.webhooks.matching import dry_run, store
from hubgate.server.webhooks.matching.store import MatchingEvent
from hubgate.server.webhooks.model import (
    ALIVE,
    CANCELLED,
    DELIVERED,
    DISABLED,
    FAILED,
    FORBIDDEN,
    LOOP,
    PARKED,
    PENDING,
    QUOTA,
    RETRYING,
    SKIPPED,
    STORED,
    SUSPENDED,
    Webhook,
)
from hubgate.server.webhooks.requests.outcome import NO_ANSWER

NOT_FOUND = "Event not found. It may have been deleted, or you cannot see its repo."
# The outcome that is neither DELIVERED nor PENDING.
NOT_SENT = "not_sent"
MAX_RECENT = 50
_NO_DELIVERY = (
    "There is no delivery: when the event happened, the webhook did not watch this repo or was not allowed to read it, "
    "or the delivery was deleted because it is old."
)


class Explanation(Struct, frozen=True):
    event: MatchingEvent
    # DELIVERED, PENDING or NOT_SENT.
    outcome: str
    # The rule that stopped the event, or that makes it wait; None if the event was delivered.
    rule: str | None
    text: str
    # The delivery that the explanation is about, if there is one.
    delivery: LoggedDelivery | None = None


async def explain(webhooks: Webhooks, webhook: Webhook, event_id: str, visible: VisibleRepos) -> Explanation:
    """Explain what became of an event. Raises NotFound for an event that the caller may not see."""
    now = webhooks.clock()

    async def unit(tx: Tx) -> Explanation:
        row = await store.visible_event(tx, event_id, visible) if is_id(event_id) else None
        if row is None:
            raise NotFound(NOT_FOUND)
        names = MatchingEvent.__struct_fields__
        (event,) = await dry_run.with_names(tx, [MatchingEvent(*(row[name] for name in names))])
        found = await activity.of_event(tx, webhook.id, event_id, now)
        if found:
            return _of_delivery(event, webhook, _decisive(found), webhooks.quota)
        moved_to = msgspec.json.decode(bytes(row["body"]), type=EventNames).moved_to
        conditions = await store.conditions(tx, webhook.id, event_id, moved_to.owner.id if moved_to else None)
        return Explanation(event, *_without_delivery(event, webhook, conditions))

    return await webhooks.db.read_long(unit)


async def recent_events(webhooks: Webhooks, visible: VisibleRepos) -> list[MatchingEvent]:
    """The newest events of the last seven days in the namespaces that the caller reads as a member."""
    since = webhooks.clock() - dry_run.SPAN

    async def unit(tx: Tx) -> list[MatchingEvent]:
        found = await store.visible_events(tx, visible.owners, visible, since, MAX_RECENT)
        return await dry_run.with_names(tx, found)

    return await webhooks.db.read_long(unit)


def _decisive(found: list[LoggedDelivery]) -> LoggedDelivery:
    """Of a delivery and its replays: one that was delivered, else one that still may be, else the last."""
    for states in ((DELIVERED, STORED), ALIVE):
        for logged in reversed(found):
            if logged.state in states:
                return logged
    return found[-1]


def _of_delivery(event: MatchingEvent, webhook: Webhook, logged: LoggedDelivery, quota: int) -> Explanation:
    if logged.state == DELIVERED:
        text = f"Delivered. The receiver answered {logged.status}."
        return Explanation(event, DELIVERED, None, text, logged)
    if logged.state == STORED:
        return Explanation(event, DELIVERED, None, "Stored. The webhook has no URL; its events are pulled.", logged)
    if logged.state in ALIVE:
        return Explanation(event, PENDING, logged.state, _waiting_text(logged), logged)
    rule = logged.reason if logged.state == SKIPPED else logged.state
    return Explanation(event, NOT_SENT, rule, _ended_text(rule, webhook, logged, quota), logged)


def _waiting_text(logged: LoggedDelivery) -> str:
    next_try = f" Next try: {_time(logged.due_at)}." if logged.due_at else ""
    return {
        PENDING: "The delivery is waiting to be sent.",
        RETRYING: f"{_last_answer(logged)}{next_try}",
        PARKED: f"The delivery waits because earlier ones failed.{next_try}",
    }[logged.state]


def _ended_text(rule: str, webhook: Webhook, logged: LoggedDelivery, quota: int) -> str:
    return {
        FAILED: f"All {logged.attempts} tries failed. {_last_answer(logged)} You can replay the delivery.",
        CANCELLED: "The delivery was cancelled.",
        QUOTA: f"The webhook was over its quota of {quota:,} triggers in 24 hours. You can replay the delivery.",
        DISABLED: "The webhook was disabled. You can replay the delivery.",
        SUSPENDED: "The webhook was suspended. You can replay the delivery.",
        FORBIDDEN: _forbidden_text(webhook),
        LOOP: "Skipped to stop a loop: five times in a row, a receiver reacted to an event with another change.",
    }.get(rule, f"Skipped: {rule}.")


def _last_answer(logged: LoggedDelivery) -> str:
    return NO_ANSWER if logged.status is None else f"The receiver answered {logged.status}."


def _without_delivery(event: MatchingEvent, webhook: Webhook, conditions: Row | None) -> tuple[str, str | None, str]:
    """The outcome, rule and text for an event without a delivery. The order of the rules is that of fan-out."""
    if conditions is None or conditions["watched_since"] is None:
        return NOT_SENT, "not_watched", "The webhook watches neither this repo nor its owner."
    # Clocks differ: fan-out also includes webhooks that seem to be somewhat younger than the event.
    tolerance = 0 if conditions["passed"] else CLOCK_TOLERANCE
    if conditions["watched_since"] > event.created_at + tolerance:
        since = _time(conditions["watched_since"])
        return NOT_SENT, "watched_later", f"The webhook has watched this repo or its owner only since {since}."
    if not conditions["gets_domain"]:
        kind = "discussions" if event.scope.startswith("discussion") else "repos"
        return NOT_SENT, "domain", f"The webhook does not send events about {kind}. Choose them under Settings."
    if not conditions["may_read"]:
        return NOT_SENT, FORBIDDEN, _forbidden_text(webhook)
    if not conditions["passed"]:
        return PENDING, "fan_out", "The event is recorded. Its delivery will be created in a moment."
    return NOT_SENT, "no_delivery", _NO_DELIVERY


def _forbidden_text(webhook: Webhook) -> str:
    if webhook.grant is not None:
        return f"The {webhook.app_noun} that {webhook.app_verb} this webhook may not read this repo."
    if webhook.org_id is not None:
        return "The organization may not read this repo: its webhooks report on its own repos and on public ones."
    return "You may not read this repo, or were not allowed to when the event happened."


def _time(moment: int) -> str:
    return iso(moment)[:19].replace("T", " ") + " UTC"
