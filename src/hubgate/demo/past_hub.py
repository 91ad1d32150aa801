"""A hub whose clock the seeding sets: its API in this process, and its deliveries step by step.

Requests pass through the same routes, checks and use cases as requests over the network, and deliveries are sent by the
same code as in the background process, to a real receiver. Only the time differs.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from hubgate.demo.api import Api, open_api
from hubgate.server.clock import SECOND, system_clock
from hubgate.server.resources import Hub, open_hub
from hubgate.server.settings import Settings
from hubgate.server.webhooks.activity.rollup import RollUp
from hubgate.server.webhooks.delivering.deliverer import Deliverer
from hubgate.server.webhooks.fanout.fanning import FanOut


class SetClock:
    """A clock that shows the time that it was set to."""

    def __init__(self) -> None:
        self.now = system_clock()

    def __call__(self) -> int:
        return self.now


@dataclass
class PastHub:
    hub: Hub
    clock: SetClock
    api: Api
    _deliverer: Deliverer

    async def deliver_until(self, moment: int) -> None:
        """Send all deliveries and retries that are due before this time, each at its time, and set the clock to it."""
        await self._deliver_due()
        while (due := self._deliverer.dispatch.queue.next_time()) is not None and due < moment:
            self.clock.now = max(due, self.clock.now + SECOND)
            await self._deliver_due()
        self.clock.now = max(moment, self.clock.now)

    async def _deliver_due(self) -> None:
        deliverer = self._deliverer
        await deliverer.beat()
        while True:
            while await FanOut(self.hub.webhooks, deliverer).step():
                pass
            await deliverer.look()
            busy = [await deliverer.store_some(), await deliverer.check_some()]
            if deliverer.dispatch.queue.in_flight:
                await asyncio.sleep(0.001)
            elif not any(busy) and not deliverer.dispatch.batch:
                return

    async def draw_charts(self) -> None:
        roll_up = RollUp(self.hub.webhooks)
        while await roll_up.step():
            pass


@contextlib.asynccontextmanager
async def open_past_hub(settings: Settings) -> AsyncIterator[PastHub]:
    clock = SetClock()
    hub = await open_hub(settings, clock)
    try:
        async with open_api(hub) as api, _only_deliverer(hub) as deliverer:
            yield PastHub(hub, clock, api, deliverer)
    finally:
        await hub.close()


@contextlib.asynccontextmanager
async def _only_deliverer(hub: Hub) -> AsyncIterator[Deliverer]:
    """A deliverer that owns all webhooks, without loops: its steps are called."""
    deliverer = Deliverer(hub.webhooks, asyncio.Event(), silence_seconds=0)
    await deliverer.ownership.start()
    await deliverer.beat()
    if deliverer.moving is not None:
        await deliverer.moving
    try:
        yield deliverer
    finally:
        deliverer.dispatch.is_void = True
        deliverer.dispatch.sender.abort()
        await deliverer.ownership.end()
