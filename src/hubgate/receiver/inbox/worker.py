"""Adds deliveries to the inbox, and processes them on the server's event loop."""

import asyncio
import contextlib
import logging
import sqlite3
import time
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from hubgate.receiver.asgi import RawHeaders
from hubgate.receiver.inbox.store import Store, StoredDelivery, WorkerLock
from hubgate.receiver.log import ErrorLog, printable

T = TypeVar("T")

MAX_CONCURRENT = 8
# Seconds before each retry of a failed handler. After the last retry the delivery fails permanently.
RETRY_DELAYS = (5.0, 30.0, 120.0, 600.0, 1800.0)
# How often the process may die while it runs a delivery: the delivery may be the cause.
MAX_INTERRUPTIONS = 12
# How often to check for deliveries that other processes added, and for processes that died.
POLL_SECONDS = 1.0
SWEEP_SECONDS = 3600.0
STOP_SECONDS = 10.0
INTERRUPTED = "%d deliveries were interrupted and will run again"

logger = logging.getLogger("hubgate.receiver")


class Inbox:
    """The inbox. `work` runs a delivery and returns whether it succeeded.

    Several event loops may add deliveries; only one loop processes them.
    """

    def __init__(self, file: Path, work: Callable[[StoredDelivery], Awaitable[bool]]) -> None:
        self.file, self._work = file, work
        # How long handlers may finish when the receiver stops.
        self.stop_seconds = STOP_SECONDS
        # SQLite blocks on the disk, so it runs in a separate thread; a single one, which serializes transactions.
        self._thread: ThreadPoolExecutor | None = None
        self._store: Store | None = None
        self._lock: WorkerLock | None = None
        self._worker: _Worker | None = None
        self._opened: list[Store | WorkerLock] = []
        weakref.finalize(self, _close_all, self._opened)

    def check(self) -> None:
        """Raise OSError if the file cannot be used, before the receiver announces that it accepts deliveries."""
        try:
            Store(self.file).close()
        except sqlite3.Error as error:
            folder = self.file.parent
            fix = "Choose another file with inbox=" if folder.is_dir() else f"Create its folder: mkdir -p {folder}"
            raise OSError(f"The inbox {self.file} cannot be used: {error}. {fix}") from None

    async def put(self, path: str, delivery_id: str, headers: RawHeaders, body: bytes) -> str:
        """Store a delivery durably and return its state. Raises sqlite3.Error if it could not be written."""
        state = await self.with_store(Store.put, path, delivery_id, headers, body, time.time())
        if self._worker is not None:
            self._worker.wake()
        return state

    async def with_store(self, operation: Callable[..., T], *given: object) -> T:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "hubgate-inbox")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._call, operation, given)

    def _call(self, operation: Callable[..., T], given: tuple[object, ...]) -> T:
        if self._store is None:
            self._store = Store(self.file)
            self._opened.append(self._store)
        return operation(self._store, *given)

    async def try_acquire_lock(self) -> bool:
        def acquire(_: Store) -> bool:
            if self._lock is None:
                self._lock = WorkerLock(self.file)
                self._opened.append(self._lock)
            return self._lock.try_acquire()

        return await self.with_store(acquire)

    def _release_lock(self, _: Store) -> None:
        if self._lock is not None:
            self._lock.release()

    def start(self) -> None:
        """Start processing on this loop, unless another running loop does it."""
        if self._worker is None or not self._worker.is_alive:
            self._worker = _Worker(self, self._work)

    async def stop(self) -> None:
        """Stop processing. Handlers that do not finish within `stop_seconds` are cancelled and run again later."""
        worker, self._worker = self._worker, None
        if worker is not None and worker.is_on_this_loop:
            await worker.stop()
            await self.with_store(self._release_lock)

    async def settle(self) -> None:
        """Wait until no delivery is running or due."""
        while await self.with_store(Store.count_pending, time.time()):  # noqa: ASYNC110 (other processes cannot notify this one)
            await asyncio.sleep(0.02)

    def close(self) -> None:
        """Close the files. Further use opens them again."""
        if self._thread is not None:
            self._thread.shutdown()
        _close_all(self._opened)
        self._thread = self._store = self._lock = None


class _Worker:
    def __init__(self, inbox: Inbox, work: Callable[[StoredDelivery], Awaitable[bool]]) -> None:
        self._inbox, self._work = inbox, work
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._stopping = False
        self._running: dict[asyncio.Task[None], StoredDelivery] = {}
        self._errors = ErrorLog(f"The inbox {inbox.file} cannot be used; retrying")
        self._record_errors = ErrorLog("The result of a delivery could not be recorded; retrying")
        self._task = self._loop.create_task(self._run_forever(), name="hubgate-inbox")

    @property
    def is_alive(self) -> bool:
        return self._loop.is_running() and not self._task.done()

    @property
    def is_on_this_loop(self) -> bool:
        return self._loop is asyncio.get_running_loop()

    def wake(self) -> None:
        # The worker's loop may be closed.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._woken.set)

    async def stop(self) -> None:
        self._stopping = True
        self._woken.set()
        await asyncio.wait((self._task, *self._running), timeout=self._inbox.stop_seconds)
        running = dict(self._running)
        for task in (self._task, *running):
            task.cancel()
        await asyncio.gather(self._task, *running, return_exceptions=True)
        interrupted = [delivery.number for task, delivery in running.items() if task.cancelled()]
        if interrupted:
            # If this fails, the next process resets them.
            with contextlib.suppress(sqlite3.Error):
                await self._inbox.with_store(Store.release, interrupted)
            logger.warning(INTERRUPTED, len(interrupted))

    async def _run_forever(self) -> None:
        while not self._stopping:
            try:
                await self._process()
            except sqlite3.Error as error:
                self._errors.add(error)
                self._woken.clear()
                await self._pause(POLL_SECONDS)

    async def _process(self) -> None:
        while not await self._inbox.try_acquire_lock():
            if self._stopping:
                return
            self._woken.clear()
            await self._pause(POLL_SECONDS)
        if not self._running:
            interrupted = await self._inbox.with_store(Store.recover)
            if interrupted:
                logger.warning(INTERRUPTED, interrupted)
        swept = 0.0
        while not self._stopping:
            if time.monotonic() - swept > SWEEP_SECONDS:
                await self._inbox.with_store(Store.delete_expired, time.time())
                swept = time.monotonic()
            if not await self._start_due():
                due = await self._inbox.with_store(Store.next_due)
                self._errors.reset()
                left = POLL_SECONDS if due is None else due - time.time()
                # What is due waits until one that is running has ended.
                await self._pause(POLL_SECONDS if self._running and left <= 0 else left)

    async def _start_due(self) -> bool:
        self._woken.clear()
        room = MAX_CONCURRENT - len(self._running)
        claim = partial(Store.claim, suspect_runs=any(delivery.is_suspect for delivery in self._running.values()))
        claimed = await self._inbox.with_store(claim, room, time.time()) if room else []
        for delivery in claimed:
            task = self._loop.create_task(self._run(delivery))
            self._running[task] = delivery
            task.add_done_callback(self._on_task_done)
        return bool(claimed)

    def _on_task_done(self, task: "asyncio.Task[None]") -> None:
        del self._running[task]
        self._woken.set()

    async def _pause(self, seconds: float) -> None:
        if self._stopping:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(max(seconds, 0.0), POLL_SECONDS)):
                await self._woken.wait()

    async def _run(self, delivery: StoredDelivery) -> None:
        if delivery.interruptions >= MAX_INTERRUPTIONS:
            logger.error(
                "Delivery %s was interrupted too often (%d times) and will not be retried",
                printable(delivery.delivery_id),
                delivery.interruptions,
            )
            await self._record(Store.mark_failed, delivery.number, time.time(), "interrupted too often")
        elif await self._run_work(delivery):
            await self._record(Store.mark_done, delivery.number, time.time())
        elif delivery.failures < len(RETRY_DELAYS):
            await self._record(
                Store.schedule_retry, delivery.number, time.time() + RETRY_DELAYS[delivery.failures], "failed"
            )
        else:
            logger.error(
                "Delivery %s failed %d times and will not be retried",
                printable(delivery.delivery_id),
                delivery.failures + 1,
            )
            await self._record(Store.mark_failed, delivery.number, time.time(), "failed")

    async def _run_work(self, delivery: StoredDelivery) -> bool:
        """Run a delivery. Any exception is a failure: otherwise the delivery would stay running until a restart."""
        try:
            return await self._work(delivery)
        except Exception:
            logger.exception("Delivery %s could not be run", printable(delivery.delivery_id))
            return False

    async def _record(self, operation: Callable[..., None], *given: object) -> None:
        """Record the outcome of a delivery, and retry indefinitely: a full disk must not make a delivery run twice."""
        while True:
            try:
                await self._inbox.with_store(operation, *given)
            except sqlite3.Error as error:
                self._record_errors.add(error)
                await asyncio.sleep(POLL_SECONDS)
            else:
                self._record_errors.reset()
                return


def _close_all(opened: "list[Store | WorkerLock]") -> None:
    while opened:
        opened.pop().close()
