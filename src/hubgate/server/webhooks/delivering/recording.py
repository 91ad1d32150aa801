"""Stores the results of many attempts in one unit."""

from dataclasses import dataclass, field

from msgspec.structs import replace

from hubgate.server.storage.database import Row, Tx
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering import results_store
from hubgate.server.webhooks.delivering.results_store import Result
from hubgate.server.webhooks.health import Health
from hubgate.server.webhooks.management import store as management_store
from hubgate.server.webhooks.management.suspension import suspend_or_warn
from hubgate.server.webhooks.model import DELIVERED, RETRYING, SUSPENDED


@dataclass
class Batch:
    """Results and changes of health that are not stored yet."""

    results: list[Result] = field(default_factory=list)
    # Deliveries that will not be sent: webhook, delivery, state and reason.
    unsent: list[tuple[str, str, str, str]] = field(default_factory=list)
    # The health of webhooks for which it changed, with the `resets` for which it holds.
    healths: dict[str, tuple[int, Health]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.results) + len(self.unsent)

    def __bool__(self) -> bool:
        return bool(self.results or self.unsent or self.healths)

    def prepend(self, earlier: "Batch") -> None:
        """Put back a batch that could not be stored, before newer results."""
        self.results[:0], self.unsent[:0] = earlier.results, earlier.unsent
        self.healths = {**earlier.healths, **self.healths}

    @property
    def delivery_ids(self) -> list[tuple[str, str]]:
        """The deliveries as (webhook, id)."""
        return [(each.webhook_id, each.id) for each in self.results] + [each[:2] for each in self.unsent]


async def record(tx: Tx, webhooks: Webhooks, batch: Batch, now: int) -> set[str]:
    """Store a batch. Returns webhooks that were changed concurrently, whose rows must be read again."""
    failed = [result for result in batch.results if result.state != DELIVERED]
    locked = await results_store.lock_webhooks(tx, {*(result.webhook_id for result in failed), *batch.healths})
    moved = {result.id for result in failed if _is_of_old_url(result, locked)}
    # Failed at an old URL: these are tried at the current one.
    results = [
        replace(result, state=RETRYING, due_at=now) if result.id in moved else result for result in batch.results
    ]
    await results_store.record(tx, results)
    await results_store.end_unsent(tx, [each[1:] for each in batch.unsent], now)
    # What was in flight when a webhook was suspended does not change the reason of that.
    healths = {
        webhook_id: health
        for webhook_id, health in batch.healths.items()
        if webhook_id not in locked or locked[webhook_id]["state"] != SUSPENDED
    }
    warned: set[str] = set()
    for webhook_id in sorted(healths):
        row = locked.get(webhook_id)
        if row is not None and row["resets"] == healths[webhook_id][0]:
            # A failed test has no consequences.
            of_webhook = [
                each for each in failed if each.webhook_id == webhook_id and each.id not in moved and not each.is_test
            ]
            health = await suspend_or_warn(tx, webhooks, row, healths[webhook_id][1], of_webhook, now)
            if health != healths[webhook_id][1]:
                warned.add(webhook_id)
            healths[webhook_id] = (row["resets"], health)
    await results_store.set_health(tx, healths)
    await management_store.reset_health(tx, warned)
    changed = warned | {
        webhook_id
        for webhook_id, (resets, _) in healths.items()
        if webhook_id in locked and locked[webhook_id]["resets"] != resets
    }
    return changed | {result.webhook_id for result in failed if result.id in moved}


def _is_of_old_url(result: Result, locked: dict[str, Row]) -> bool:
    row = locked.get(result.webhook_id)
    return row is not None and row["url"] is not None and row["url"] != result.url
