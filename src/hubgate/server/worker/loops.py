"""Background loops. A lease ensures that one process at a time runs each loop; a failed step is retried."""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable

from msgspec import Struct

from hubgate.server.clock import SECOND, Clock
from hubgate.server.errors import HubError
from hubgate.server.storage.database import Database
from hubgate.server.worker import store

log = logging.getLogger("hubgate.worker")

# A step starts with at least half of the lease left. If a step takes longer, as mail to a slow server may, or if clocks
# differ by more, a second runner starts concurrently: every step is safe to run twice at once.
LEASE_SECONDS = 60
RELEASE_SECONDS = 2.0


class Loop(Struct, frozen=True):
    """A background loop. `step` does a small piece of work and returns whether there is more to do immediately."""

    name: str
    every_seconds: float
    step: Callable[[], Awaitable[bool]]
    # After this time, another process takes over from a runner that died.
    lease_seconds: int = LEASE_SECONDS
    # Set by others when there is something to do before `every_seconds` have passed.
    wake: asyncio.Event | None = None


class LoopRunner(Struct, frozen=True):
    db: Database
    clock: Clock
    stop: asyncio.Event

    async def run(self, loops: list[Loop]) -> None:
        await asyncio.gather(*(self._run_one(loop, secrets.token_hex(8)) for loop in loops))

    async def _run_one(self, loop: Loop, holder: str) -> None:
        leased_until = 0
        while not self.stop.is_set():
            try:
                leased_until = await self._lease(loop, holder, leased_until)
                more = leased_until > 0 and await loop.step()
            except Exception:
                log.exception("loop %s failed and will be retried", loop.name)
                more = False
            if not more:
                await self._pause(loop)
        await self._release(loop, holder)

    async def _lease(self, loop: Loop, holder: str, leased_until: int) -> int:
        """Acquire or renew the lease and return its expiry, or 0 if another runner has the lease."""
        now = self.clock()
        duration = loop.lease_seconds * SECOND
        expires_at = now + duration
        if duration // 2 < leased_until - now <= duration:
            # An idle hub must not write to its disk every second only to renew the lease.
            return leased_until
        return (
            expires_at if await self.db.write(lambda tx: store.acquire(tx, loop.name, holder, now, expires_at)) else 0
        )

    async def _release(self, loop: Loop, holder: str) -> None:
        """Release the lease, so that another process can take over before it expires."""
        with contextlib.suppress(HubError, TimeoutError):
            async with asyncio.timeout(RELEASE_SECONDS):
                await self.db.write(lambda tx: store.release(tx, loop.name, holder))

    async def _pause(self, loop: Loop) -> None:
        if loop.wake is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(loop.every_seconds):
                    await self.stop.wait()
            return
        waits = [asyncio.ensure_future(event.wait()) for event in (self.stop, loop.wake)]
        await asyncio.wait(waits, timeout=loop.every_seconds, return_when=asyncio.FIRST_COMPLETED)
        for waiting in waits:
            waiting.cancel()
        loop.wake.clear()
