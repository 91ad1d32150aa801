"""Replays of many deliveries, run on demand with a frozen clock."""

import asyncio
import time

from tests.bed.running_hub import RunningHub
from tests.bed.webhooks import deliver_due, only_deliverer

from hubgate.server.errors import OutcomeUnknown
from hubgate.server.resources import Hub
from hubgate.server.webhooks.replaying.model import Replay
from hubgate.server.webhooks.replaying.runner import ReplayRunner

LONGEST_SECONDS = 100.0


class _RunnerInDoubt(ReplayRunner):
    """Its connection breaks after each commit."""

    async def _queue_some(self, replay: Replay, limit: int) -> None:
        await super()._queue_some(replay, limit)
        raise OutcomeUnknown

    async def step(self) -> bool:
        try:
            return await super().step()
        except OutcomeUnknown:
            return True


def run_replays(hub: RunningHub, *, in_doubt: bool = False) -> None:
    """Deliver what is due, then run all replays to the end. The clock is advanced as their rate needs it."""

    async def work(opened: Hub) -> None:
        await deliver_due(opened.webhooks)
        deadline = time.monotonic() + LONGEST_SECONDS
        async with only_deliverer(opened.webhooks) as deliverer:
            runner = (_RunnerInDoubt if in_doubt else ReplayRunner)(opened.webhooks, deliverer)
            while await runner.step():
                assert time.monotonic() < deadline, "a replay does not end"
                hub.clock.advance(0.005)
                await deliverer.look()
                while await deliverer.store_some() or await deliverer.check_some():
                    pass
                await asyncio.sleep(0.002)

    hub.call(work)
