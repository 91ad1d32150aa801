"""The sender's main loop: write down what came of tries and claim as many as there is room for, both in one unit; send
each in its own task.

Any number of processes may run it. Room is bounded by deliveries in the air, so a thousand receivers that hang take
their own turns and nobody else's: a webhook has at most eight in the air, one once half of the room is taken, and
whoever waited longest comes next. What ends while a unit commits is written down by the next: the more there is to do,
the more one commit does.
"""

import asyncio
import contextlib
import itertools
import logging
from collections import deque
from dataclasses import dataclass, field

from hubgate.server import failpoint
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering.claiming import Claim, claiming
from hubgate.server.webhooks.delivering.leases import store
from hubgate.server.webhooks.delivering.losing import release_lost
from hubgate.server.webhooks.delivering.noting import LIMIT, Result, noting
from hubgate.server.webhooks.delivering.sending import Sender, Unsent
from hubgate.server.webhooks.model import MAX_IN_FLIGHT

log = logging.getLogger("hubgate.deliver")

MAX_TOTAL_IN_FLIGHT = 4096
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


@dataclass
class Deliverer:
    webhooks: Webhooks
    stop: asyncio.Event
    # Set by whoever knows that there is something to send or to write down.
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    _webhooks_at_once: int = store.MAX_WEBHOOKS
    _sending: set["asyncio.Task[None]"] = field(default_factory=set)
    # They stay here, and in the air, until they are written down.
    _results: deque[Result] = field(default_factory=deque)

    async def run(self) -> None:
        """Until told to stop, and then until everything is written down."""
        await asyncio.gather(self._take_turns(), self._look_for_lost(), self._finish_when_stopped())

    async def _take_turns(self) -> None:
        sender = Sender(self.webhooks)
        while not self.stop.is_set() or self._sending or self._results:
            self.wake.clear()
            try:
                claimed = await self._turn()
            except Exception:
                log.exception("a turn of deliveries failed and will be taken again")
                await asyncio.sleep(AFTER_TROUBLE_SECONDS)
                self._forget_overdue()
                continue
            if claimed is None:
                await self._nap()
                continue
            for one in claimed:
                self._begin(sender, one)

    async def _turn(self) -> list[Claim] | None:
        """What was claimed; None where there was nothing to do."""
        if self._results and self._sending:
            await asyncio.sleep(GATHERING_SECONDS)
        results = list(itertools.islice(self._results, LIMIT))
        webhooks, each = self._room()
        if not results and (not webhooks or not await store.is_any_due(self.webhooks.db, self.webhooks.clock())):
            return None
        note = noting(self.webhooks, results) if results else None
        claim = claiming(self.webhooks, webhooks, each) if webhooks else None

        async def unit(tx: Tx) -> list[Claim]:
            if note is not None:
                await note(tx)
            return await claim(tx) if claim is not None else []

        if results:
            failpoint.hit("deliver-before-note")
        claimed = await self.webhooks.db.write_long(unit)
        if results:
            failpoint.hit("deliver-after-note")
        for _ in results:
            self._results.popleft()
        if webhooks:
            self._adapt(len(claimed))
        return claimed if claimed or results else None

    def _room(self) -> tuple[int, int]:
        """For how many webhooks, and for how many deliveries of each."""
        in_the_air = len(self._sending) + len(self._results)
        each = MAX_IN_FLIGHT if in_the_air < MAX_TOTAL_IN_FLIGHT // 2 else 1
        room = 0 if self.stop.is_set() else (MAX_TOTAL_IN_FLIGHT - in_the_air) // each
        return min(room, self._webhooks_at_once), each

    def _adapt(self, claimed: int) -> None:
        """To what can be sent at once: whatever waits after its claim has to be looked at again."""
        if claimed > 2 * CLAIMED_AT_ONCE:
            self._webhooks_at_once = max(self._webhooks_at_once // 2, FEWEST_WEBHOOKS)
        elif claimed < CLAIMED_AT_ONCE:
            self._webhooks_at_once = min(self._webhooks_at_once * 2, store.MAX_WEBHOOKS)

    def _begin(self, sender: Sender, claimed: Claim) -> None:
        if self.stop.is_set():
            self._results.append(Unsent(claimed, self.webhooks.clock()))
            return
        task = asyncio.create_task(self._send(sender, claimed))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

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
        self.wake.set()

    def _forget_overdue(self) -> None:
        """After its lease nobody's result counts any more."""
        now = self.webhooks.clock()
        kept = [result for result in self._results if result.claim.until > now]
        self._results.clear()
        self._results.extend(kept)

    async def _look_for_lost(self) -> None:
        while not self.stop.is_set():
            try:
                if await release_lost(self.webhooks):
                    self.wake.set()
            except Exception:
                log.exception("looking for lost deliveries failed and will be tried again")
            await self._pause(LOOKS_FOR_LOST_EVERY)

    async def _finish_when_stopped(self) -> None:
        """What is in the air ends soon or is given back at once, so that another process sends it."""
        await self.stop.wait()
        if self._sending:
            await asyncio.wait(self._sending, timeout=FINISH_SECONDS)
        for task in self._sending:
            task.cancel()
        if self._sending:
            await asyncio.wait(self._sending)
        self.wake.set()

    async def _nap(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(IDLE_SECONDS):
                await self.wake.wait()

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.stop.wait()
