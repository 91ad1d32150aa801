"""Limits on concurrent git subprocesses and long database reads in this process.

Each uses memory and a CPU core, possibly for a long time, so there is a total limit, and lower limits per caller and
per repo.
"""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import msgspec
from msgspec import Struct

from hubgate.server.errors import Unavailable
from hubgate.server.jobs.caller import BACKGROUND, WATCH_AFTER_SECONDS, ClientLeft, current_job_caller


@dataclass(eq=False)
class _Slot:
    """A request for a slot, by one subprocess or long read; queued until the slot is granted."""

    caller: str
    repo: str
    granted: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    is_acquired: bool = False

    def abandon(self) -> None:
        if not self.granted.done():
            self.granted.set_exception(ClientLeft())


class Slots(Struct, frozen=True):
    """A set of slots, granted first come, first served, skipping requests whose caller or repo is at its limit."""

    limit: int
    max_per_caller: int
    refusal: str = "Too many clones, fetches or pushes at once. Try again."
    longest_wait: float = 30.0
    # Queued requests of one caller: each release of a slot scans the whole queue.
    max_waiting: int = 500
    # None: no limit per repo.
    max_per_repo: int | None = None
    _caller_slots: Counter[str] = msgspec.field(default_factory=Counter)
    _repo_slots: Counter[str] = msgspec.field(default_factory=Counter)
    _queued: deque[_Slot] = msgspec.field(default_factory=deque)

    @contextlib.asynccontextmanager
    async def acquire(self, caller: str, repo: str = "") -> AsyncIterator[bool]:
        """Wait for a slot; Unavailable on timeout, ClientLeft if the client of a read-only request disconnects. Yields
        whether the request was queued, so that its permission may have been lost since then.
        """
        slot = _Slot(caller, repo)
        was_queued = not self._is_free(slot)
        if was_queued:
            await self._wait(slot)
        else:
            self._grant(slot)
        try:
            yield was_queued
        finally:
            self._release(slot)

    async def _wait(self, slot: _Slot) -> None:
        caller = current_job_caller.get()
        caller.check()
        if sum(queued.caller == slot.caller for queued in self._queued) >= self.max_waiting:
            raise Unavailable(self.refusal, retry_after=10)
        self._queued.append(slot)
        caller.waiting.add(slot)
        timer = asyncio.get_running_loop().call_later(WATCH_AFTER_SECONDS, caller.watch)
        try:
            async with asyncio.timeout(self.longest_wait):
                await slot.granted
        except BaseException as error:
            if slot.is_acquired:
                self._release(slot)
            else:
                self._queued.remove(slot)
            if isinstance(error, TimeoutError):
                raise Unavailable(self.refusal, retry_after=10) from None
            raise
        finally:
            timer.cancel()
            caller.waiting.discard(slot)

    def _is_free(self, slot: _Slot) -> bool:
        repo_limit = self.limit if self.max_per_repo is None else self.max_per_repo
        # The limit per caller does not apply to background work: the number of its loops limits it, and in a delivery
        # process it is the only caller.
        has_share = slot.caller == BACKGROUND.share_key or self._caller_slots[slot.caller] < self.max_per_caller
        return has_share and self._caller_slots.total() < self.limit and self._repo_slots[slot.repo] < repo_limit

    def _grant(self, slot: _Slot) -> None:
        slot.is_acquired = True
        self._caller_slots[slot.caller] += 1
        self._repo_slots[slot.repo] += 1

    def _release(self, slot: _Slot) -> None:
        slot.is_acquired = False
        for counter, name in ((self._caller_slots, slot.caller), (self._repo_slots, slot.repo)):
            counter[name] -= 1
            if not counter[name]:
                del counter[name]
        for queued in list(self._queued):
            if not queued.granted.done() and self._is_free(queued):
                self._queued.remove(queued)
                self._grant(queued)
                queued.granted.set_result(None)
