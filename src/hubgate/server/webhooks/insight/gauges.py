"""Metrics about deliveries, set by the background process of a hub with metrics, or by web processes without one."""

import asyncio
import logging

from msgspec import Struct

from hubgate.server.clock import SECOND, Clock
from hubgate.server.metrics import Metrics, NoMetrics
from hubgate.server.storage.database import Database
from hubgate.server.webhooks.insight.overview import DeliveryOverview, read_overview
from hubgate.server.webhooks.shards.heartbeats import Heartbeats

log = logging.getLogger("hubgate.deliver")

EVERY_SECONDS = 10.0


class DeliveryGauges(Struct, frozen=True):
    db: Database
    clock: Clock
    metrics: Metrics
    heartbeats: Heartbeats

    async def run(self, stop: asyncio.Event) -> None:
        """Set the metrics until `stop`. Without metrics there is nothing to do."""
        if isinstance(self.metrics, NoMetrics):
            return
        while not stop.is_set():
            try:
                overview = await read_overview(self.db, self.clock, self.heartbeats)
                self.metrics.deliveries(_values(overview, self.clock()))
            except Exception:
                log.exception("metrics about deliveries could not be read, which will be retried")
            try:
                async with asyncio.timeout(EVERY_SECONDS):
                    await stop.wait()
            except TimeoutError:
                continue


def _values(overview: DeliveryOverview, now: int) -> dict[str, float]:
    oldest_at = now if overview.oldest_at is None else overview.oldest_at
    return {
        "hubgate_deliveries_waiting": overview.waiting,
        "hubgate_deliveries_retrying": overview.retries,
        "hubgate_events_waiting": overview.events,
        "hubgate_deliveries_oldest_waiting_seconds": max(now - oldest_at, 0) / SECOND,
        "hubgate_delivery_attempts_per_minute": overview.attempts,
        "hubgate_delivery_processes": overview.processes,
        "hubgate_webhooks_failing": sum(host.webhooks for host in overview.failing),
        "hubgate_webhooks_failing_hosts": len(overview.failing),
    }
