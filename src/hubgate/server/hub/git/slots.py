"""How many git programs may run for the outside at once, in this process. Each takes memory and a processor, and a slow
client keeps one busy for long: so there is a limit for all, and a lower one for each caller.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from hubgate.server.errors import Unavailable


@dataclass(frozen=True)
class Slots:
    most: int
    most_each: int
    refusal: str = "Too many clones, fetches or pushes at once. Try again."
    longest_wait: float = 30.0
    _taken: Counter[str] = field(default_factory=Counter)
    _freed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @contextlib.asynccontextmanager
    async def taken(self, caller: str) -> AsyncIterator[None]:
        """Waits its turn; Unavailable if that takes too long."""
        async with self._freed:
            try:
                async with asyncio.timeout(self.longest_wait):
                    await self._freed.wait_for(lambda: self._is_free(caller))
            except TimeoutError:
                raise Unavailable(self.refusal, retry_after=10) from None
            self._taken[caller] += 1
        try:
            yield
        finally:
            self._taken[caller] -= 1
            if not self._taken[caller]:
                del self._taken[caller]
            async with self._freed:
                self._freed.notify_all()

    def _is_free(self, caller: str) -> bool:
        return self._taken.total() < self.most and self._taken[caller] < self.most_each
