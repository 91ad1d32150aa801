"""The state of all deliveries of the hub, for the operator's page, the metrics and `hubgate doctor`."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from hubgate.server.clock import Clock
from hubgate.server.jobs.heartbeats import Heartbeats
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.webhooks.insight import store
from hubgate.server.webhooks.management.store import oldest_waiting
from hubgate.server.webhooks.shards import store as shards_store

MAX_FAILING = 10_000
_POLL_SECONDS = 0.25


class FailingHost(Struct, frozen=True):
    name: str
    # How many failing webhooks send to this host, and since when the first of them has failed.
    webhooks: int
    since: int


class DeliveryOverview(Struct, frozen=True):
    new_deliveries: int
    retries: int
    # Events that have not been fanned out.
    events: int
    # Processes that send, and the number of their attempts in the last minute.
    processes: int
    attempts: int
    # Since when the oldest event or due delivery has waited; None if nothing waits.
    oldest_at: int | None
    # The hosts with the most failing webhooks first.
    failing: tuple[FailingHost, ...]

    @property
    def waiting(self) -> int:
        return self.new_deliveries + self.retries


async def read_overview(db: Database, clock: Clock, heartbeats: Heartbeats) -> DeliveryOverview:
    """The state now. `heartbeats` remembers those of earlier calls: a process of another machine that was killed counts
    until its heartbeat has not changed for some time.
    """
    now = clock()

    async def unit(tx: Tx) -> tuple[Row, Sequence[Row], Sequence[Row]]:
        return await store.counts(tx), await store.failing(tx, MAX_FAILING), await store.senders(tx)

    counts, failing, senders = await db.read_long(unit)
    dead = heartbeats.dead({row["id"]: (row["heartbeat"], row["machine"]) for row in senders})
    attempts = [row["attempts"] for row in senders if row["id"] not in dead]
    oldest_at = await oldest_waiting(db, now)
    return DeliveryOverview(
        counts["new_deliveries"],
        counts["retries"],
        counts["events"],
        processes=len(attempts),
        attempts=sum(attempts),
        oldest_at=oldest_at if oldest_at is not None and oldest_at <= now else None,
        failing=_hosts(failing),
    )


def _hosts(failing: Sequence[Row]) -> tuple[FailingHost, ...]:
    """The hosts of failing webhooks, which begin with the one that has failed for the longest time."""
    webhooks: Counter[str] = Counter()
    since: dict[str, int] = {}
    for row in failing:
        host = urlsplit(row["url"]).netloc
        webhooks[host] += 1
        since.setdefault(host, row["failing_since"])
    return tuple(FailingHost(host, count, since[host]) for host, count in webhooks.most_common())


async def is_any_process_delivering(db: Database, seconds: float) -> bool:
    """Whether the heartbeat of a process changes within this time. A process that was killed leaves its row."""
    before = await shards_store.senders(db)
    deadline = asyncio.get_running_loop().time() + seconds
    while before and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(_POLL_SECONDS)
        now = await shards_store.senders(db)
        if any(before.get(each) != state for each, state in now.items()):
            return True
    return False
