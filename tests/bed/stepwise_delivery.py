"""A delivery process that a test moves on step by step: what it starts, what ends, and when it stores the results."""

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace
from tests.bed.processes import until
from tests.bed.running_hub import RunningHub
from tests.bed.webhooks import only_deliverer

from hubgate.server.resources import Hub
from hubgate.server.webhooks.delivering.deliverer import Deliverer
from hubgate.server.webhooks.delivering.webhook_queue import Item
from hubgate.server.webhooks.fanout.fanning import FanOut
from hubgate.server.webhooks.shards.ownership import Ownership

T = TypeVar("T")


@dataclass
class Steps:
    hub: RunningHub
    deliverer: Deliverer

    def call(self, work: Callable[[Deliverer], Awaitable[T]]) -> T:
        return self.hub.call(lambda _: work(self.deliverer))

    @property
    def in_flight(self) -> list[Item]:
        """Deliveries whose requests have no response yet, in the order of their start."""

        async def work(deliverer: Deliverer) -> list[Item]:
            webhooks = deliverer.dispatch.queue.webhooks.values()
            return [item for queue in webhooks for item in queue.in_flight.values()]

        return self.call(work)

    @property
    def unstored(self) -> int:
        """Results that are not stored yet."""
        return len(self.deliverer.dispatch.batch)

    def start(self) -> list[Item]:
        """Fan out, and start all requests that may start. Results are not stored; rows are read only if there are
        none.
        """

        async def work(deliverer: Deliverer) -> None:
            busy = True
            while busy:
                while await FanOut(deliverer.webhooks, deliverer).step():
                    pass
                await deliverer.look()
                busy = not deliverer.dispatch.batch and await deliverer.store_some()
                busy = await deliverer.check_some() or busy

        self.call(work)
        return self.in_flight

    def wait_for_results(self, count: int) -> None:
        """Wait until this many requests have ended without being stored."""
        until(lambda: self.unstored >= count)
        assert self.unstored == count

    def store(self) -> None:
        """Store results, then read rows and start what may start."""
        self.call(lambda deliverer: deliverer.store_some())
        self.start()

    def run(self) -> None:
        """Continue until nothing is due any more."""
        while self.start() or self.unstored:
            until(lambda: self.unstored or not self.in_flight)
            self.store()

    def wait_until_checks_are_stale(self) -> None:
        """State and permission of a delivery are not older than a tenth of a second when it starts."""
        over = time.monotonic() + 0.1
        until(lambda: time.monotonic() > over)


@contextmanager
def stepwise(hub: RunningHub) -> Iterator[Steps]:
    """A process that owns all shards. At the end it aborts its requests and stores nothing, as one that dies."""

    async def begin(opened: Hub) -> tuple[Deliverer, Callable[[], Awaitable[None]]]:
        context = only_deliverer(opened.webhooks)
        deliverer = await context.__aenter__()

        async def end() -> None:
            await context.__aexit__(None, None, None)

        return deliverer, end

    deliverer, end = hub.call(begin)
    try:
        yield Steps(hub, deliverer)
    finally:
        hub.call(lambda _: end())


def take_over(hub: RunningHub) -> None:
    """Take over from all running processes, as another process does when their heartbeats stop. Nothing is sent."""

    async def work(opened: Hub) -> None:
        other = Ownership(opened.db, replace(opened.webhooks.pace, dead_after_seconds=0.0))
        await other.start()
        await other.beat()
        await other.end()

    hub.call(work)
