"""The hourly roll-up of deliveries, created in the background, for charts.

An hour is a range of the webhook's delivery numbers. Its sums are computed again until no delivery of the hour waits:
soon while the hour is recent, then less often, and less often for hours with many deliveries.
"""

from dataclasses import dataclass

from hubgate.server.clock import DAY, HOUR, MINUTE
from hubgate.server.storage.database import Row, Tx
from hubgate.server.storage.sqltext import Params
from hubgate.server.webhooks.activity import durations
from hubgate.server.webhooks.activity import rollup_store as store
from hubgate.server.webhooks.activity.rollup_store import HourRange
from hubgate.server.webhooks.context import Webhooks

EVERY_SECONDS = 60.0
RETAINED = 32 * DAY
_WEBHOOKS_AT_ONCE = 500
_HOURS_AT_ONCE = 100
# Numbers of one webhook that a step reads.
_DELIVERIES_AT_ONCE = 50_000
# An hour with a million deliveries is computed again after a quarter of an hour at the earliest.
_WAIT_PER_DELIVERY = 1000


@dataclass
class RollUp:
    """The background job. Two that run concurrently do no harm."""

    webhooks: Webhooks
    # A round adds the new deliveries of all webhooks, in the order of their ids, then computes the hours that are due.
    _after: str = ""
    _is_adding: bool = True

    async def step(self) -> bool:
        """Do a part of a round, and return whether the round continues."""
        if self._is_adding:
            self._is_adding = await self._add_hours()
            return True
        more = await self._compute_hours()
        self._is_adding = not more
        return more

    async def _add_hours(self) -> bool:
        """Add new deliveries of the next webhooks; False after the last ones."""
        now, after, db = self.webhooks.clock(), self._after, self.webhooks.db
        found = await db.read_long(lambda tx: store.webhooks_after(tx, after, _WEBHOOKS_AT_ONCE))
        new = [each for each in found if each.last_seq > each.after]
        hours = await db.read_long(lambda tx: store.new_hours(tx, new, _DELIVERIES_AT_ONCE)) if new else []
        if hours:
            await db.write_long(lambda tx: store.extend(tx, hours, now))
        reached: dict[str, int] = {}
        for hour in hours:
            reached[hour.webhook_id] = max(hour.last_seq, reached.get(hour.webhook_id, 0))
        if any(reached.get(each.webhook_id, each.last_seq) < each.last_seq for each in new):
            # A webhook has more new deliveries than one step reads.
            return True
        self._after = found[-1].webhook_id if len(found) == _WEBHOOKS_AT_ONCE else ""
        return bool(self._after)

    async def _compute_hours(self) -> bool:
        now, db = self.webhooks.clock(), self.webhooks.db
        due = await db.read_long(lambda tx: store.due_hours(tx, now, _HOURS_AT_ONCE))
        if not due:
            return False
        sums = await db.read_long(lambda tx: store.sums(tx, due))
        # Retention has deleted deliveries of these hours: what was counted before stays.
        deleted = [hour for hour in due if int(sums[hour.webhook_id, hour.hour]["total"]) < hour.total]
        rows = [_columns(hour, sums[hour.webhook_id, hour.hour], now) for hour in due if hour not in deleted]

        final = [str(row["webhook_id"]) for row in rows if row["next_at"] is None]
        ended = sorted({*final, *(hour.webhook_id for hour in deleted)})

        async def unit(tx: Tx) -> None:
            await store.store(tx, rows)
            await store.close(tx, deleted)
            # Every hour becomes final once, so every webhook gets its turn.
            await store.delete_old(tx, ended, now - RETAINED)

        await db.write_long(unit)
        return len(due) == _HOURS_AT_ONCE


def _columns(hour: HourRange, row: Row, now: int) -> Params:
    counts = {name: int(row[name]) for name in store.SUMS}
    of_durations = [int(row[f"duration{number}"]) for number in range(durations.RANGES)]
    return {
        "webhook_id": hour.webhook_id,
        "hour": hour.hour,
        "first_seq": hour.first_seq,
        "last_seq": hour.last_seq,
        **counts,
        "durations": durations.encode(of_durations),
        "next_at": _next_at(hour.hour, counts, now),
    }


def _next_at(hour: int, counts: dict[str, int], now: int) -> int | None:
    """When to compute the sums again; None if they are final. A skipped delivery that was in flight may succeed within
    the next hour.
    """
    age = now - hour
    if not counts["retrying"] and not counts["waiting"] and age > 2 * HOUR:
        return None
    return now + max(MINUTE, age // 10) + counts["total"] * _WAIT_PER_DELIVERY
