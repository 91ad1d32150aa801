"""How much of one kind of work may run at once in this process: git programs, long reads of the database. Each takes
memory and a processor, and may last long: so there is a limit for all, and a lower one for each caller and each repo.
"""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from hubgate.server.errors import Unavailable
from hubgate.server.jobs.caller import BACKGROUND, UNWATCHED, ClientLeft, caller_of_context


@dataclass(eq=False)
class _Place:
    """Of one program or read, waited for or taken."""

    caller: str
    repo: str
    given: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    is_taken: bool = False

    def abandon(self) -> None:
        if not self.given.done():
            self.given.set_exception(ClientLeft())


@dataclass(frozen=True)
class Slots:
    """Those who wait are served in the order in which they came, but for whom there is no room yet."""

    most: int
    most_each: int
    refusal: str = "Too many clones, fetches or pushes at once. Try again."
    longest_wait: float = 30.0
    # Of one caller: whoever gives a place back looks at all who wait.
    most_waiting: int = 500
    # None: a repo may have all of them.
    most_of_repo: int | None = None
    _of_caller: Counter[str] = field(default_factory=Counter)
    _of_repo: Counter[str] = field(default_factory=Counter)
    _waiting: deque[_Place] = field(default_factory=deque)

    @contextlib.asynccontextmanager
    async def taken(self, caller: str, repo: str = "") -> AsyncIterator[None]:
        """Waits its turn; Unavailable if that takes too long, ClientLeft if the client of a reading request does
        not wait for it.
        """
        place = _Place(caller, repo)
        if self._is_free(place):
            self._take(place)
        else:
            await self._wait(place)
        try:
            yield
        finally:
            self._give_back(place)

    async def _wait(self, place: _Place) -> None:
        who = caller_of_context.get()
        who.check()
        if sum(waiting.caller == place.caller for waiting in self._waiting) >= self.most_waiting:
            raise Unavailable(self.refusal, retry_after=10)
        self._waiting.append(place)
        who.waiting.add(place)
        timer = asyncio.get_running_loop().call_later(UNWATCHED, who.watch)
        try:
            async with asyncio.timeout(self.longest_wait):
                await place.given
        except BaseException as error:
            if place.is_taken:
                self._give_back(place)
            else:
                self._waiting.remove(place)
            if isinstance(error, TimeoutError):
                raise Unavailable(self.refusal, retry_after=10) from None
            raise
        finally:
            timer.cancel()
            who.waiting.discard(place)

    def _is_free(self, place: _Place) -> bool:
        of_repo = self.most if self.most_of_repo is None else self.most_of_repo
        # What a process does by itself is bounded by its loops; a process that only delivers has no other caller.
        has_share = place.caller == BACKGROUND.share or self._of_caller[place.caller] < self.most_each
        return has_share and self._of_caller.total() < self.most and self._of_repo[place.repo] < of_repo

    def _take(self, place: _Place) -> None:
        place.is_taken = True
        self._of_caller[place.caller] += 1
        self._of_repo[place.repo] += 1

    def _give_back(self, place: _Place) -> None:
        place.is_taken = False
        for counter, name in ((self._of_caller, place.caller), (self._of_repo, place.repo)):
            counter[name] -= 1
            if not counter[name]:
                del counter[name]
        for waiting in list(self._waiting):
            if not waiting.given.done() and self._is_free(waiting):
                self._waiting.remove(waiting)
                self._take(waiting)
                waiting.given.set_result(None)
