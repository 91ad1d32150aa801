"""Limits the requests in flight to one IP address, regardless of name, port and owner.

A thousand webhooks of a hundred users that all point at one victim must not flood it (attack W29). The limit applies
to each process.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hubgate.server.egress.addresses import Address, embedded_in

PER_ADDRESS = 64
# A receiver that responds frees a slot within this time. If all requests hang, waiting longer is useless.
WAIT_SECONDS = 0.5


class AddressSlots:
    def __init__(self) -> None:
        self._taken: Counter[Address | None] = Counter()
        self._waiting: dict[Address | None, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def entered(self, address: Address) -> AsyncIterator[bool]:
        """Take a slot for the duration of the block; False if none is free in time. All spellings share one limit."""
        reached = embedded_in(address)
        if self._taken[reached] < PER_ADDRESS:
            self._taken[reached] += 1
        elif not await self._wait_for_slot(reached):
            yield False
            return
        try:
            yield True
        finally:
            self._release(reached)

    async def _wait_for_slot(self, reached: Address | None) -> bool:
        """Wait for a slot that another request releases, in first-come order; False after the timeout."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(reached, deque()).append(turn)
        try:
            await asyncio.wait([turn], timeout=WAIT_SECONDS)
        except asyncio.CancelledError:
            if not turn.cancel():
                self._release(reached)
            raise
        return not turn.cancel()

    def _release(self, reached: Address | None) -> None:
        waiting = self._waiting.get(reached, deque())
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._waiting.pop(reached, None)
        self._taken[reached] -= 1
        if not self._taken[reached]:
            del self._taken[reached]
