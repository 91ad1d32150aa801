"""Metrics about the whole hub, set by its background process, or by web processes without one."""

import asyncio
from functools import partial

from hubgate.server import metrics
from hubgate.server.resources import Hub
from hubgate.server.spaces import gauges as space_gauges
from hubgate.server.webhooks.insight import gauges as delivery_gauges


async def set_gauges(hub: Hub, stop: asyncio.Event) -> None:
    """Set the metrics until `stop` is set. Without metrics there is nothing to do."""
    found = metrics.for_this_process()
    if isinstance(found, metrics.NoMetrics):
        return
    reads = [partial(delivery_gauges.read_gauges, hub.db, hub.clock, hub.heartbeats)]
    if hub.settings.runs_spaces:
        reads.append(partial(space_gauges.read_gauges, hub.db))
    await asyncio.gather(*(metrics.set_regularly(found, read, stop) for read in reads))
