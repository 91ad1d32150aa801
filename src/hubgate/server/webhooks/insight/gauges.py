"""Metrics about deliveries, set by the background process of a hub with metrics, or by web processes without one."""

from hubgate.server.clock import SECOND, Clock
from hubgate.server.jobs.heartbeats import Heartbeats
from hubgate.server.storage.database import Database
from hubgate.server.webhooks.insight.overview import read_overview


async def read_gauges(db: Database, clock: Clock, heartbeats: Heartbeats) -> dict[str, float]:
    overview, now = await read_overview(db, clock, heartbeats), clock()
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
