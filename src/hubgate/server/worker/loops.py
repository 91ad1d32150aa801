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

# Far beyond clock skew and beyond any step; renewed before each step.
LEASE_SECONDS = 60
RELEASE_SECONDS = 2.0


@dataclass(frozen=True)
class Loop:
    """`step` does a small piece of work and says whether there is more to do at once."""

    name: str
    every_seconds: float
    step: Callable[[], Awaitable[bool]]


@dataclass(frozen=True)
class LoopRunner:
    db: Database
    clock: Clock
    stop: asyncio.Event

    async def run(self, loops: list[Loop]) -> None:
        await asyncio.gather(*(self._run_one(loop, secrets.token_hex(8)) for loop in loops))

    async def _run_one(self, loop: Loop, holder: str) -> None:
        while not self.stop.is_set():
            try:
                more = await self._holds(loop, holder) and await loop.step()
            except Exception:
                log.exception("loop %s failed and will try again", loop.name)
                more = False
            if not more:
                await self._pause(loop.every_seconds)
        await self._release(loop, holder)

    async def _holds(self, loop: Loop, holder: str) -> bool:
        now = self.clock()
        expires_at = now + LEASE_SECONDS * SECOND
        return await self.db.write(lambda tx: store.acquire(tx, loop.name, holder, now, expires_at))

    async def _release(self, loop: Loop, holder: str) -> None:
        """A courtesy: without it the lease simply runs out."""
        with contextlib.suppress(HubError, TimeoutError):
            async with asyncio.timeout(RELEASE_SECONDS):
                await self.db.write(lambda tx: store.release(tx, loop.name, holder))

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.stop.wait()
