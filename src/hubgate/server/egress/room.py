"""How many requests may be in the air to one IP address, whatever the name, the port and whose they are.

A thousand webhooks of a hundred users that all point at one victim make no flood of it (attack W29). Each process
counts its own.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hubgate.server.egress.addresses import Address, embedded_in

PER_ADDRESS = 64
# A receiver that answers makes room within that; where everything hangs, nobody waits for it.
WAIT_SECONDS = 0.5


class Rooms:
    def __init__(self) -> None:
        self._taken: Counter[Address | None] = Counter()
        self._waiting: dict[Address | None, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def entered(self, address: Address) -> AsyncIterator[bool]:
        """Whether there is room, now or in a moment, held until the block ends. Spellings of one address share it."""
        reached = embedded_in(address)
        if self._taken[reached] < PER_ADDRESS:
            self._taken[reached] += 1
        elif not await self._was_handed(reached):
            yield False
            return
        try:
            yield True
        finally:
            self._leave(reached)

    async def _was_handed(self, reached: Address | None) -> bool:
        """The room of one that left, in the order of asking."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(reached, deque()).append(turn)
        try:
            await asyncio.wait([turn], timeout=WAIT_SECONDS)
        except asyncio.CancelledError:
            if not turn.cancel():
                self._leave(reached)
            raise
        return not turn.cancel()

    def _leave(self, reached: Address | None) -> None:
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
