"""Sums of deliveries over time, from the hourly roll-up: for the charts of a webhook and the sparklines of a list."""

from collections.abc import Sequence

from msgspec import Struct

from hubgate.server.accounts.model import Owner
from hubgate.server.clock import DAY, HOUR
from hubgate.server.storage.database import Row
from hubgate.server.webhooks.activity import durations
from hubgate.server.webhooks.activity import rollup_store as store
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.model import Webhook

SPARKLINE_HOURS = 24


class Span(Struct, frozen=True):
    """The time that a chart shows, in `count` parts of equal length."""

    name: str
    label: str
    step: int
    count: int


SPANS = (
    Span("day", "24 hours", HOUR, 24),
    Span("week", "7 days", 6 * HOUR, 28),
    Span("month", "30 days", DAY, 30),
)


class Part(Struct, frozen=True):
    """Deliveries that were created in one part of the time."""

    start: int
    end: int
    total: int = 0
    delivered: int = 0
    failed: int = 0
    retrying: int = 0
    waiting: int = 0
    skipped: int = 0
    # Of first attempts with a response, in milliseconds.
    median_ms: int | None = None
    slowest_ms: int | None = None

    @property
    def tried(self) -> int:
        return self.delivered + self.failed + self.retrying

    @property
    def success_percent(self) -> float | None:
        """The share of tried deliveries that have been delivered so far."""
        return 100 * self.delivered / self.tried if self.tried else None


class Activity(Struct, frozen=True):
    span: Span
    parts: Sequence[Part]
    # The sum of all parts.
    whole: Part


async def activity(webhooks: Webhooks, webhook: Webhook, span: Span) -> Activity:
    end = webhooks.clock() // span.step * span.step + span.step
    start = end - span.count * span.step
    rows = await webhooks.db.read_long(lambda tx: store.of_webhook(tx, webhook.id, start))
    by_part: dict[int, list[Row]] = {}
    for row in rows:
        by_part.setdefault(row["hour"] // span.step * span.step, []).append(row)
    starts = range(start, end, span.step)
    parts = [_sum(by_part.get(each, ()), each, each + span.step) for each in starts]
    return Activity(span, parts, _sum(rows, start, end))


def _sum(rows: Sequence[Row], start: int, end: int) -> Part:
    counts = durations.NO_COUNTS
    for row in rows:
        counts = durations.add(counts, durations.decode(row["durations"]))
    sums = {name: sum(int(row[name]) for row in rows) for name in store.SUMS}
    median, slowest = durations.percentile(counts, 0.5), durations.percentile(counts, 0.95)
    return Part(start, end, **sums, median_ms=median, slowest_ms=slowest)


async def hourly_totals(webhooks: Webhooks, owner: Owner) -> dict[str, list[int]]:
    """Deliveries in each of the last SPARKLINE_HOURS hours, oldest first, by webhook; without idle webhooks."""
    last = webhooks.clock() // HOUR * HOUR
    first = last - (SPARKLINE_HOURS - 1) * HOUR
    rows = await webhooks.db.read_long(lambda tx: store.of_owner(tx, owner.user_id, owner.org_id, first))
    found: dict[str, list[int]] = {}
    for row in rows:
        place = (row["hour"] - first) // HOUR
        if place < SPARKLINE_HOURS:
            found.setdefault(row["webhook_id"], [0] * SPARKLINE_HOURS)[place] = int(row["total"])
    return found
