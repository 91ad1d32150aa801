"""Background loops: each has one runner among all processes, by a lease, and outlives any single failure."""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from hubgate.server.clock import SECOND, Clock
from hubgate.server.errors import HubError
from hubgate.server.storage.database import Database
from hubgate.server.worker import store

log = logging.getLogger("hubgate.worker")

# Half of it is far beyond clock skew, and a step begins with at least that much left. One that takes longer, as mail
# to a slow server may, gets a second runner beside it: every step is made so that this does no harm.
LEASE_SECONDS = 60
RELEASE_SECONDS = 2.0


@dataclass(frozen=True)
class Loop:
    """`step` does a small piece of work and says whether there is more to do at once."""

    name: str
    every_seconds: float
    step: Callable[[], Awaitable[bool]]
    # How long others wait for a runner that died.
    lease_seconds: int = LEASE_SECONDS


@dataclass(frozen=True)
class LoopRunner:
    db: Database
    clock: Clock
    stop: asyncio.Event

    async def run(self, loops: list[Loop]) -> None:
        await asyncio.gather(*(self._run_one(loop, secrets.token_hex(8)) for loop in loops))

    async def _run_one(self, loop: Loop, holder: str) -> None:
        held_until = 0
        while not self.stop.is_set():
            try:
                held_until = await self._lease(loop, holder, held_until)
                more = held_until > 0 and await loop.step()
            except Exception:
                log.exception("loop %s failed and will try again", loop.name)
                more = False
            if not more:
                await self._pause(loop.every_seconds)
        await self._release(loop, holder)

    async def _lease(self, loop: Loop, holder: str, held_until: int) -> int:
        """Until when the loop is ours; 0 while it is another's."""
        now = self.clock()
        lasts = loop.lease_seconds * SECOND
        expires_at = now + lasts
        if held_until - now > lasts // 2:
            # An idle hub must not write to its disk every second only to stay the holder.
            return held_until
        return (
            expires_at if await self.db.write(lambda tx: store.acquire(tx, loop.name, holder, now, expires_at)) else 0
        )

    async def _release(self, loop: Loop, holder: str) -> None:
        """A courtesy: without it the lease simply runs out."""
        with contextlib.suppress(HubError, TimeoutError):
            async with asyncio.timeout(RELEASE_SECONDS):
                await self.db.write(lambda tx: store.release(tx, loop.name, holder))

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.stop.wait()
