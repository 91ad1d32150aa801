"""The delivery process: five loops around the queue in memory.

`_keep_ownership` stores heartbeats, claims and releases shards; `_watch` aborts requests before a takeover; `_check`
reads state and permission right before sending; `_store` stores results and reads rows; `_look` finds wake-ups and due
times. Results of requests that end during a commit are stored by the next unit, so units grow with the load.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hubgate.server import failpoint
from hubgate.server.clock import SECOND
from hubgate.server.storage.database import Tx
from hubgate.server.storage.signals import Signal, wait_for
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering import windows_store
from hubgate.server.webhooks.delivering.dispatch import Dispatch
from hubgate.server.webhooks.delivering.queue import FEWEST_PER_HOST, FRESH_SECONDS, MAX_PER_HOST
from hubgate.server.webhooks.delivering.recording import Batch, record
from hubgate.server.webhooks.delivering.webhook_queue import Item, Window
from hubgate.server.webhooks.insight.throughput import Throughput
from hubgate.server.webhooks.requests.request import WebhookSettings
from hubgate.server.webhooks.shards import store as shards_store
from hubgate.server.webhooks.shards import work_store
from hubgate.server.webhooks.shards.ownership import Ownership, TakenOver
from hubgate.server.webhooks.shards.store import shard_of

log = logging.getLogger("hubgate.deliver")

CHECKED_AT_ONCE, READ_AT_ONCE, FOUND_AT_ONCE = 256, 128, 1000
# The results of this time are stored together.
GATHERING_SECONDS = 0.002
AFTER_TROUBLE_SECONDS = 0.5


@dataclass(eq=False)
class Deliverer:
    webhooks: Webhooks
    stop: asyncio.Event
    # For lock files (`Ownership`).
    folder: Path | None = None
    silence_seconds: float | None = None
    # Owned shards whose rows have been read: for them deliveries are handed over in memory.
    shards: set[int] = field(default_factory=set)
    # A read of rows and a hand-over must not overlap: a delivery would be queued twice.
    exclusive: asyncio.Lock = field(default_factory=asyncio.Lock)
    # Set when another process has committed events.
    new_events: asyncio.Event = field(default_factory=asyncio.Event)
    _work: asyncio.Event = field(default_factory=asyncio.Event)
    _unchecked: asyncio.Event = field(default_factory=asyncio.Event)
    # Set by wake-ups, and when the earliest due time becomes earlier.
    _look_now: asyncio.Event = field(default_factory=asyncio.Event)
    _is_signalled: bool = False
    _beat_now: asyncio.Event = field(default_factory=asyncio.Event)
    # Fewer while checks take too long to be of use.
    checked_at_once: int = CHECKED_AT_ONCE
    # Results could not be stored: nothing is sent.
    _in_trouble: bool = False
    _has_wakes: bool = False
    _throughput: Throughput = field(default_factory=Throughput)
    # Reads the rows of new shards, or releases shards.
    moving: "asyncio.Task[None] | None" = None

    def __post_init__(self) -> None:
        self.ownership = Ownership(self.webhooks.db, self.webhooks.pace, self.folder)
        self.dispatch = self._new_dispatch()

    def _new_dispatch(self) -> Dispatch:
        return Dispatch(self.webhooks, self._on_work, self._look_now.set, self._may_start, self.silence_seconds)

    def _on_work(self) -> None:
        self._work.set()
        if self.dispatch.queue.has_unchecked:
            self._unchecked.set()

    def _may_start(self, moment: float) -> bool:
        return not self.stop.is_set() and not self._in_trouble and self.ownership.may_send(moment)

    async def run(self) -> None:
        """Send until `stop` is set, then store all results and release the shards."""
        listening = await self.webhooks.db.listen(self._on_signal)
        try:
            await self._retry(self.ownership.start)
            loops = [self._keep_ownership, self._watch, self._check, self._store, self._look]
            running = [asyncio.create_task(loop()) for loop in loops]
            stopping = asyncio.create_task(self._finish_when_stopped())
            ended, _ = await asyncio.wait([*running, stopping], return_when=asyncio.FIRST_COMPLETED)
            for task in (*running, stopping, *([self.moving] if self.moving else ())):
                task.cancel()
            await asyncio.gather(*running, stopping, return_exceptions=True)
            for task in ended:
                # Raises the error of a loop, which is a bug: the process ends and is started again.
                task.result()
        finally:
            await listening.close()

    def _on_signal(self, signal: Signal) -> None:
        if signal is Signal.DELIVERIES:
            self._is_signalled = True
            self._look_now.set()
        elif signal is Signal.SHARDS:
            self._beat_now.set()
        elif signal is Signal.EVENTS:
            self.new_events.set()

    async def _keep_ownership(self) -> None:
        while True:
            try:
                await self.beat()
            except TakenOver:
                await self._start_over()
            except Exception:
                log.exception("a heartbeat failed and will be retried")
            await wait_for(self._beat_now, self.webhooks.pace.heartbeat_seconds)

    async def _watch(self) -> None:
        """Abort requests before another process can take over, even while a heartbeat waits for the database."""
        while True:
            await asyncio.sleep(self.webhooks.pace.heartbeat_seconds / 2)
            if self.ownership.must_abort(time.monotonic()):
                self.dispatch.sender.abort()

    async def beat(self) -> None:
        """One heartbeat: claim a fair share of the shards, or release what is beyond it."""
        await self.ownership.beat(self._throughput.last_minute(time.monotonic()))
        per_process = max(MAX_PER_HOST // self.ownership.processes, FEWEST_PER_HOST)
        self.dispatch.queue.per_host = per_process
        self.webhooks.egress.limit_per_address(per_process)
        if self.moving is not None and not self.moving.done():
            # What this beat was to do, after a process has ended for example, must not wait for the next interval.
            self.moving.add_done_callback(lambda _: self._beat_now.set())
            return
        await self.ownership.claim()
        # In a task, so that heartbeats continue.
        if new := self.ownership.shards - self.shards:
            self.moving = asyncio.create_task(self._move(self._find_work(self.dispatch, new)))
        elif surplus := self.ownership.surplus:
            self.moving = asyncio.create_task(self._move(self._release(self.dispatch, surplus)))

    async def _start_over(self) -> None:
        self.dispatch.is_void = True
        self.dispatch.sender.abort()
        if self.stop.is_set():
            return
        log.warning("another process has taken over; starting over")
        # After the units that began under the old id: what they know is void under the new one.
        async with self.exclusive:
            self.shards, self.dispatch = set(), self._new_dispatch()
            await self._retry(self.ownership.start)
        self._beat_now.set()

    async def _move(self, work: Awaitable[None]) -> None:
        try:
            await work
        except TakenOver:
            self._beat_now.set()
        except Exception:
            log.exception("shards could not be moved, which will be retried")

    async def _find_work(self, dispatch: Dispatch, claimed: set[int]) -> None:
        """Find the webhooks of new shards that have deliveries, with a seek in an index for each webhook."""
        for statement in work_store.WITH_WORK:
            after = ""
            while found := await self.webhooks.db.read_long(
                partial(work_store.with_work, statement=statement, after=after, limit=FOUND_AT_ONCE)
            ):
                after = found[-1]
                for webhook_id in found:
                    if shard_of(webhook_id) in claimed:
                        dispatch.queue.read_again(webhook_id)
        if not dispatch.is_void:
            self.shards |= claimed
            self._has_wakes = True
            self._work.set()

    async def _release(self, dispatch: Dispatch, shards: set[int]) -> None:
        """Give shards to other processes, after requests in flight have ended."""
        async with self.exclusive:
            if dispatch.is_void:
                return
            self.shards -= shards
            queues = dispatch.queue.leave(shards)

        def have_ended() -> bool:
            return not any(shard_of(item.webhook_id) in shards for item in dispatch.sender.awaited)

        await self._until(have_ended, self.webhooks.pace.finish_seconds)
        for queue in queues:
            for item in list(queue.in_flight.values()):
                dispatch.sender.abort(item)
        await self._until(lambda: not any(queue.unsettled for queue in queues), self.webhooks.pace.finish_seconds)
        async with self.exclusive:
            if dispatch.is_void:
                return
            if any(queue.unsettled for queue in queues):
                # The results could not be stored in time, so the shards stay with this process.
                dispatch.queue.stay(self.webhooks.clock())
                self.shards |= shards
                return
            dispatch.queue.forget(shards)
            await self.ownership.release(shards)

    async def _check(self) -> None:
        while True:
            await self._unchecked.wait()
            self._unchecked.clear()
            try:
                while await self.check_some():
                    pass
            except Exception:
                log.exception("deliveries could not be checked and will be checked again")
                await asyncio.sleep(AFTER_TROUBLE_SECONDS)
                self._unchecked.set()

    async def check_some(self) -> bool:
        """Check the next deliveries and start them; False if there are none."""
        dispatch, moment = self.dispatch, time.monotonic()
        items = dispatch.queue.to_check(self.checked_at_once, self.webhooks.clock(), moment)
        if not items:
            return False
        try:
            rows = await windows_store.check(self.webhooks.db, [item.id for item in items])
        except BaseException:
            dispatch.queue.checked(items, self.webhooks.clock())
            raise
        dispatch.apply_check(items, rows, self.valid_since(moment, time.monotonic(), len(items)))
        return True

    def valid_since(self, began: float, ended: float, count: int) -> float:
        """When a check began, unless the database is so slow that nothing could ever start: then a check of a single
        delivery is valid for a moment after its end, if the one before was slow too. After a single pause, such as that
        of a lost packet, the delivery is checked again.
        """
        was_slow, is_slow = self.checked_at_once == 1, ended - began > FRESH_SECONDS / 2
        self.checked_at_once = max(count // 2, 1) if is_slow else min(2 * self.checked_at_once, CHECKED_AT_ONCE)
        return ended - FRESH_SECONDS / 2 if is_slow and was_slow else began

    async def _store(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            if self.dispatch.queue.in_flight:
                await asyncio.sleep(GATHERING_SECONDS)
            try:
                while await self.store_some():
                    pass
            except TakenOver:
                self._beat_now.set()
                await asyncio.sleep(AFTER_TROUBLE_SECONDS)
            except Exception:
                log.exception("results could not be stored and will be retried")
                self._in_trouble = True
                await asyncio.sleep(AFTER_TROUBLE_SECONDS)
                self._work.set()

    async def store_some(self) -> bool:
        """Store results, and read rows of webhooks; False if there is nothing to do."""
        dispatch, now = self.dispatch, self.webhooks.clock()
        if not dispatch.batch and not dispatch.queue.unread and not self._has_wakes:
            return False
        async with self.exclusive:
            if dispatch.is_void:
                return False
            batch, dispatch.batch = dispatch.batch, Batch()
            takes_wakes, self._has_wakes = self._has_wakes, False
            to_read = dispatch.queue.take_unread(READ_AT_ONCE)
            changed: set[str] = set()
            if not batch and not takes_wakes and not to_read:
                self._in_trouble = False
                return False
            try:
                windows = await self._in_unit(batch, takes_wakes, to_read, changed, now)
            except BaseException:
                dispatch.batch.prepend(batch)
                self._has_wakes |= takes_wakes
                # Of changed ones too: the unit may have been committed.
                for webhook_id in (*to_read, *changed):
                    dispatch.queue.read_again(webhook_id)
                raise
            for webhook_id, window in windows.items():
                dispatch.queue.load(webhook_id, window, now)
        self._in_trouble = False
        self._throughput.add(len(batch.results), time.monotonic())
        for webhook_id in changed:
            dispatch.queue.read_again(webhook_id)
        dispatch.queue.settle(batch.delivery_ids, now)
        dispatch.pump()
        return True

    async def _in_unit(
        self, batch: Batch, takes_wakes: bool, to_read: dict[str, str], changed: set[str], now: int
    ) -> dict[str, Window | None]:
        """Read windows. Webhooks that must be read again are added to `changed`, even if the commit fails."""

        async def unit(tx: Tx) -> dict[str, Window | None]:
            if batch or takes_wakes:
                await self.ownership.require(tx)
            if batch:
                changed.update(await record(tx, self.webhooks, batch, now))
            if takes_wakes:
                changed.update(await shards_store.take_wakes(tx, self.shards))
            return await windows_store.windows(tx, to_read, now)

        if not batch and not takes_wakes:
            return await self.webhooks.db.read_long(unit)
        if batch:
            failpoint.hit("deliver-before-store")
        result = await self.webhooks.db.write_long(unit)
        if batch:
            failpoint.hit("deliver-after-store")
        return result

    def hand_over(self, items: Iterable[Item], settings: Mapping[str, WebhookSettings]) -> None:
        """Queue deliveries that were just stored, unless this process no longer owns their shard."""
        owned = {webhook_id for webhook_id in settings if shard_of(webhook_id) in self.shards}
        self.dispatch.hand_over((item for item in items if item.webhook_id in owned), settings)

    def read_again(self, webhook_ids: Iterable[str]) -> None:
        """Read the rows of webhooks again, as far as this process owns them."""
        for webhook_id in webhook_ids:
            if shard_of(webhook_id) in self.shards:
                self.dispatch.queue.read_again(webhook_id)
        self._work.set()

    async def _look(self) -> None:
        # Wake-ups may be lost.
        interval = self.webhooks.db.poll_seconds
        polled = -interval
        while True:
            try:
                # Between polls, due times need no query: those of a replay are a few milliseconds apart.
                if self._is_signalled or time.monotonic() >= polled + interval:
                    polled, self._is_signalled = time.monotonic(), False
                    await self.look()
                else:
                    self._start_due()
            except Exception:
                log.exception("looking for deliveries failed and will be retried")
            left, due_at = polled + interval - time.monotonic(), self.dispatch.queue.next_time()
            until_due = left if due_at is None else (due_at - self.webhooks.clock()) / SECOND
            await wait_for(self._look_now, max(min(until_due, left), 0.001))

    async def look(self) -> None:
        """Find wake-ups, and deliveries that are due."""
        if self.shards and await shards_store.has_wakes(self.webhooks.db, self.shards):
            self._has_wakes = True
            self._work.set()
        self._start_due()

    def _start_due(self) -> None:
        self.dispatch.queue.due(self.webhooks.clock())
        self.dispatch.pump()

    async def _finish_when_stopped(self) -> None:
        await self.stop.wait()
        await self._until(lambda: not self.dispatch.sender.awaited, self.webhooks.pace.finish_seconds)
        self.dispatch.sender.abort()
        with contextlib.suppress(TakenOver):
            await self._retry(self._store_rest)
        with contextlib.suppress(Exception):
            await self.ownership.end()

    async def _store_rest(self) -> None:
        """Store all results. A unit that is running may fail and put its results back, so it is waited for."""
        while True:
            async with self.exclusive:
                if self.dispatch.is_void or not self.dispatch.batch:
                    return
            await self.store_some()

    async def _retry(self, action: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await action()
            except TakenOver:
                raise
            except Exception:
                log.exception("the database failed and will be tried again")
                await asyncio.sleep(AFTER_TROUBLE_SECONDS)
            else:
                return

    async def _until(self, condition: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not condition() and time.monotonic() < deadline:
            self._work.set()
            await asyncio.sleep(0.01)
