"""The sender's main loop: claim as many as there is room for, send each in its own task, write down what came of them.

Any number of processes may run it. Room is bounded by deliveries in the air, so a thousand receivers that hang take
their own turns and nobody else's: a webhook has at most eight in the air, one once half of the room is taken, and
whoever waited longest comes next.
"""

import asyncio
import contextlib
import logging
from collections import deque
from dataclasses import dataclass, field

from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering import noting
from hubgate.server.webhooks.delivering.claiming import Claim, claim
from hubgate.server.webhooks.delivering.leases import store
from hubgate.server.webhooks.delivering.losing import release_lost
from hubgate.server.webhooks.delivering.noting import Result
from hubgate.server.webhooks.delivering.sending import Sender, Unsent
from hubgate.server.webhooks.model import PER_WEBHOOK

log = logging.getLogger("hubgate.deliver")

MOST_IN_THE_AIR = 4096
# About so many, of as many webhooks as that takes.
CLAIMED_AT_ONCE = 96
FEWEST_WEBHOOKS = 8
# What ends together is written down together.
GATHERING_SECONDS = 0.002
# Wake-ups are hints; this is the guarantee.
IDLE_SECONDS = 0.025
LOOKS_FOR_LOST_EVERY = 1.0
AFTER_TROUBLE_SECONDS = 0.5
# What is in the air when we are asked to stop may end within this; the rest is given back.
FINISH_SECONDS = 4.0
LAST_NOTES_SECONDS = 2.0


@dataclass
class Deliverer:
    webhooks: Webhooks
    stop: asyncio.Event
    # Set by whoever knows that there is something to send.
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    _webhooks_at_once: int = store.MOST_WEBHOOKS
    _sending: set["asyncio.Task[None]"] = field(default_factory=set)
    _results: deque[Result] = field(default_factory=deque)
    _handed_in: asyncio.Event = field(default_factory=asyncio.Event)
    # Nothing else will be handed in.
    _is_over: bool = False

    async def run(self) -> None:
        noting_down = asyncio.create_task(self._note_until_over())
        try:
            await asyncio.gather(self._claim_until_stopped(), self._look_for_lost(), self._wake_to_stop())
            await self._finish()
            await asyncio.wait([noting_down], timeout=LAST_NOTES_SECONDS)
        finally:
            noting_down.cancel()

    async def _claim_until_stopped(self) -> None:
        sender = Sender(self.webhooks)
        while not self.stop.is_set():
            self.wake.clear()
            try:
                claimed = await self._claimed()
            except Exception:
                log.exception("claiming failed and will be tried again")
                await self._pause(AFTER_TROUBLE_SECONDS)
                continue
            for one in claimed:
                task = asyncio.create_task(self._send(sender, one))
                self._sending.add(task)
                task.add_done_callback(self._sending.discard)
            if not claimed:
                await self._nap()

    async def _claimed(self) -> list[Claim]:
        in_the_air = len(self._sending) + len(self._results)
        each = PER_WEBHOOK if in_the_air < MOST_IN_THE_AIR // 2 else 1
        room = (MOST_IN_THE_AIR - in_the_air) // each
        if room <= 0 or not await store.is_any_due(self.webhooks.db, self.webhooks.clock()):
            return []
        claimed = await claim(self.webhooks, min(room, self._webhooks_at_once), each)
        self._adapt(len(claimed))
        return claimed

    def _adapt(self, claimed: int) -> None:
        """To what can be sent at once: whatever waits after its claim has to be looked at again."""
        if claimed > 2 * CLAIMED_AT_ONCE:
            self._webhooks_at_once = max(self._webhooks_at_once // 2, FEWEST_WEBHOOKS)
        elif claimed < CLAIMED_AT_ONCE:
            self._webhooks_at_once = min(self._webhooks_at_once * 2, store.MOST_WEBHOOKS)

    async def _send(self, sender: Sender, claimed: Claim) -> None:
        try:
            result: Result = await sender.send(claimed)
        except asyncio.CancelledError:
            result = Unsent(claimed, self.webhooks.clock())
        except Exception:
            # The lease runs out, and the delivery is tried again.
            log.exception("delivery %s could not be sent", claimed.delivery_id)
            return
        self._results.append(result)
        self._handed_in.set()

    async def _note_until_over(self) -> None:
        while not self._is_over:
            await self._handed_in.wait()
            self._handed_in.clear()
            if self._sending and not self._is_over:
                await asyncio.sleep(GATHERING_SECONDS)
            while self._results:
                await self._note_some()

    async def _note_some(self) -> None:
        """They stay in the list, and in the air, until they are written down."""
        some = [self._results[number] for number in range(min(len(self._results), noting.MOST))]
        try:
            await noting.note(self.webhooks, some)
        except Exception:
            log.exception("%d results were not written down and will be again", len(some))
            await asyncio.sleep(AFTER_TROUBLE_SECONDS)
            now = self.webhooks.clock()
            # After its lease nobody's result counts any more.
            kept = [result for result in some if result.claim.until > now]
            for _ in some:
                self._results.popleft()
            self._results.extend(kept)
            return
        for _ in some:
            self._results.popleft()
        # A lane, or room for another, may be free now.
        self.wake.set()

    async def _look_for_lost(self) -> None:
        while not self.stop.is_set():
            try:
                if await release_lost(self.webhooks):
                    self.wake.set()
            except Exception:
                log.exception("looking for lost deliveries failed and will be tried again")
            await self._pause(LOOKS_FOR_LOST_EVERY)

    async def _finish(self) -> None:
        """What is in the air ends soon or is given back at once, so that another process sends it."""
        if self._sending:
            await asyncio.wait(self._sending, timeout=FINISH_SECONDS)
        for task in self._sending:
            task.cancel()
        if self._sending:
            await asyncio.wait(self._sending)
        self._is_over = True
        self._handed_in.set()

    async def _wake_to_stop(self) -> None:
        await self.stop.wait()
        self.wake.set()

    async def _nap(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(IDLE_SECONDS):
                await self.wake.wait()

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.stop.wait()
