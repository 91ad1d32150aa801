"""Background loops: each has one runner among all processes, by a lease, and outlives any single failure."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from hubgate.server.clock import SECOND, Clock
from hubgate.server.storage.database import Database
from hubgate.server.worker import store

log = logging.getLogger("hubgate.worker")

# Far beyond clock skew and beyond any step; renewed before each step.
LEASE_SECONDS = 60


@dataclass(frozen=True)
class Loop:
    name: str
    every_seconds: float
    step: Callable[[], Awaitable[None]]


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
                now = self.clock()
                expires_at = now + LEASE_SECONDS * SECOND
                if await self.db.write(lambda tx: store.acquire(tx, loop.name, holder, now, expires_at)):  # noqa: B023
                    await loop.step()
            except Exception:
                log.exception("loop %s failed and will try again", loop.name)
            await self._pause(loop.every_seconds)
        await self.db.write(lambda tx: store.release(tx, loop.name, holder))

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self.stop.wait()
        except TimeoutError:
            return
