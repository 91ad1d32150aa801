"""The state of all deliveries of the hub, for the operator's page, the metrics and `hubgate doctor`."""

import asyncio
from collections import Counter
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from hubgate.server.clock import Clock
from hubgate.server.storage.database import Database, Tx
from hubgate.server.webhooks.insight import store
from hubgate.server.webhooks.management.store import oldest_waiting
from hubgate.server.webhooks.shards.store import senders

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
    # Processes that send, and the number of their attempts in the last minute. A process that died counts until others
    # have noticed.
    processes: int
    attempts: int
    # Since when the oldest event or due delivery has waited; None if nothing waits.
    oldest_at: int | None
    # The hosts with the most failing webhooks first.
    failing: tuple[FailingHost, ...]

    @property
    def waiting(self) -> int:
        return self.new_deliveries + self.retries


async def read_overview(db: Database, clock: Clock) -> DeliveryOverview:
    now = clock()

    async def unit(tx: Tx) -> DeliveryOverview:
        counts, failing = await store.counts(tx), await store.failing(tx, MAX_FAILING)
        webhooks: Counter[str] = Counter()
        since: dict[str, int] = {}
        for row in failing:
            host = urlsplit(row["url"]).netloc
            webhooks[host] += 1
            since.setdefault(host, row["failing_since"])
        hosts = tuple(FailingHost(host, count, since[host]) for host, count in webhooks.most_common())
        new_deliveries, retries, events, processes, attempts = counts
        return DeliveryOverview(new_deliveries, retries, events, processes, attempts, None, hosts)

    found = await db.read_long(unit)
    oldest_at = await oldest_waiting(db, now)
    return replace(found, oldest_at=oldest_at) if oldest_at is not None and oldest_at <= now else found


async def is_any_process_delivering(db: Database, seconds: float) -> bool:
    """Whether the heartbeat of a process changes within this time. A process that was killed leaves its row."""
    before = await senders(db)
    deadline = asyncio.get_running_loop().time() + seconds
    while before and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(_POLL_SECONDS)
        now = await senders(db)
        if any(before.get(each) != state for each, state in now.items()):
            return True
    return False
