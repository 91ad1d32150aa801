"""The sender's main loop: claim as many as there is room for, send each in its own task, begin again.

Any number of processes may run it. Room is bounded by connections in the air, so a thousand receivers that hang take
their own turns and nobody else's: a webhook has at most eight in the air, and whoever waited longest comes next.
"""

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field

from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering.claiming import Claim, claim, release_lost
from hubgate.server.webhooks.delivering.sending import Sender

log = logging.getLogger("hubgate.deliver")

MOST_IN_THE_AIR = 4096
CLAIMED_AT_ONCE = 256
IDLE_SECONDS = 0.1
LOOKS_FOR_LOST_EVERY = 2.0
AFTER_TROUBLE_SECONDS = 1.0


@dataclass
class Deliverer:
    webhooks: Webhooks
    stop: asyncio.Event
    _sending: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self) -> None:
        sender = Sender(self.webhooks)
        looked_at = 0.0
        loop = asyncio.get_running_loop()
        while not self.stop.is_set():
            try:
                if loop.time() - looked_at >= LOOKS_FOR_LOST_EVERY:
                    await release_lost(self.webhooks)
                    looked_at = loop.time()
                room = min(MOST_IN_THE_AIR - len(self._sending), CLAIMED_AT_ONCE)
                claimed = await claim(self.webhooks, room) if room > 0 else []
            except Exception:
                log.exception("claiming failed and will be tried again")
                await self._pause(AFTER_TROUBLE_SECONDS)
                continue
            for one in claimed:
                self._send(sender, one)
            if not claimed:
                await self._pause(IDLE_SECONDS)
        await self._finish()

    def _send(self, sender: Sender, claimed: Claim) -> None:
        task = asyncio.create_task(self._one(sender, claimed))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _one(self, sender: Sender, claimed: Claim) -> None:
        try:
            await sender.deliver(claimed)
        except Exception:
            # The lease runs out, and the delivery is tried again.
            log.exception("delivery %s could not be finished", claimed.delivery_id)

    async def _finish(self) -> None:
        """What is in the air ends within its deadline, or is left to its lease."""
        if self._sending:
            await asyncio.wait(self._sending)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.stop.wait()
