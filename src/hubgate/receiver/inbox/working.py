"""Adds deliveries to the inbox, and processes them on the server's event loop."""

import asyncio
import contextlib
import logging
import sqlite3
import time
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from hubgate.receiver.asgi import RawHeaders
from hubgate.receiver.inbox.store import Kept, Store, Turn
from hubgate.receiver.inbox.trouble import Trouble
from hubgate.receiver.recent import plain

T = TypeVar("T")

MOST_AT_ONCE = 8
# Seconds before each retry of a failed handler. After the last retry the delivery fails permanently.
DELAYS = (5.0, 30.0, 120.0, 600.0, 1800.0)
# A delivery that crashes the process is not restarted more often than this.
MOST_STARTS = 12
# How often to check for deliveries that other processes added, and for processes that died.
LOOK_SECONDS = 1.0
SWEEP_SECONDS = 3600.0
STOP_SECONDS = 10.0

logger = logging.getLogger("hubgate.receiver")


class Inbox:
    """The inbox. `work` runs a delivery and returns whether it succeeded. Several loops may add, one of them works."""

    def __init__(self, file: Path, work: Callable[[Kept], Awaitable[bool]]) -> None:
        self.file, self._work = file, work
        # SQLite blocks on the disk, so it runs in a separate thread; a single one, which serializes transactions.
        self._thread: ThreadPoolExecutor | None = None
        self._store: Store | None = None
        self._turn: Turn | None = None
        self._worker: _Worker | None = None
        self._opened: list[Store | Turn] = []
        weakref.finalize(self, _close_all, self._opened)

    def check(self) -> None:
        """Raise OSError if the file cannot be used, before the receiver announces that it accepts deliveries."""
        try:
            Store(self.file).close()
        except sqlite3.Error as error:
            folder = self.file.parent
            fix = "Say another with inbox=" if folder.is_dir() else f"Make its folder: mkdir -p {folder}"
            raise OSError(f"The inbox {self.file} cannot be used: {error}. {fix}") from None

    async def put(self, path: str, delivery_id: str, headers: RawHeaders, body: bytes) -> str:
        """Store a delivery durably and return its state. Raises sqlite3.Error if it could not be written."""
        state = await self.with_store(Store.put, path, delivery_id, headers, body, time.time())
        if self._worker is not None:
            self._worker.wake()
        return state

    async def with_store(self, use: Callable[..., T], *given: object) -> T:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "hubgate-inbox")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._use, use, given)

    def _use(self, use: Callable[..., T], given: tuple[object, ...]) -> T:
        if self._store is None:
            self._store = Store(self.file)
            self._opened.append(self._store)
        return use(self._store, *given)

    async def has_turn(self) -> bool:
        def look(_: Store) -> bool:
            if self._turn is None:
                self._turn = Turn(self.file)
                self._opened.append(self._turn)
            return self._turn.taken()

        return await self.with_store(look)

    def _release_turn(self, _: Store) -> None:
        if self._turn is not None:
            self._turn.let_go()

    def start(self) -> None:
        """Start processing on this loop, unless another running loop does it."""
        if self._worker is None or not self._worker.alive:
            self._worker = _Worker(self, self._work)

    async def stop(self) -> None:
        """Stop processing. Handlers that do not finish within STOP_SECONDS are cancelled and run again next time."""
        worker, self._worker = self._worker, None
        if worker is not None and worker.here:
            await worker.stop()
            await self.with_store(self._release_turn)

    async def settle(self) -> None:
        """Wait until no delivery is running or due."""
        while await self.with_store(Store.pending, time.time()):  # noqa: ASYNC110 (other processes give no event)
            await asyncio.sleep(0.02)

    def close(self) -> None:
        """Close the files. Further use opens them again."""
        if self._thread is not None:
            self._thread.shutdown()
        _close_all(self._opened)
        self._thread = self._store = self._turn = None


class _Worker:
    def __init__(self, inbox: Inbox, work: Callable[[Kept], Awaitable[bool]]) -> None:
        self._inbox, self._work = inbox, work
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._stopping = False
        self._running: set[asyncio.Task[None]] = set()
        self._trouble = Trouble(f"The inbox {inbox.file} cannot be used; trying again")
        self._record_trouble = Trouble("The end of a delivery could not be noted; trying again")
        self._task = self._loop.create_task(self._run_forever(), name="hubgate-inbox")

    @property
    def alive(self) -> bool:
        return self._loop.is_running() and not self._task.done()

    @property
    def here(self) -> bool:
        return self._loop is asyncio.get_running_loop()

    def wake(self) -> None:
        # The worker's loop may be closed.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._woken.set)

    async def stop(self) -> None:
        self._stopping = True
        self._woken.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await asyncio.gather(self._task, *self._running, return_exceptions=True)
        for task in (self._task, *self._running):
            task.cancel()
        await asyncio.gather(self._task, *self._running, return_exceptions=True)

    async def _run_forever(self) -> None:
        while not self._stopping:
            try:
                await self._process()
            except sqlite3.Error as error:
                self._trouble.tell(error)
                self._woken.clear()
                await self._pause(LOOK_SECONDS)

    async def _process(self) -> None:
        while not await self._inbox.has_turn():
            if self._stopping:
                return
            await self._pause(LOOK_SECONDS)
        if not self._running:
            left = await self._inbox.with_store(Store.recover)
            if left:
                logger.warning("%d deliveries were cut short and are run again", left)
        swept = 0.0
        while not self._stopping:
            if time.monotonic() - swept > SWEEP_SECONDS:
                await self._inbox.with_store(Store.sweep, time.time())
                swept = time.monotonic()
            if not await self._start_due():
                due = await self._inbox.with_store(Store.next_due)
                self._trouble.is_over()
                full = len(self._running) >= MOST_AT_ONCE
                await self._pause(LOOK_SECONDS if due is None or full else due - time.time())

    async def _start_due(self) -> bool:
        self._woken.clear()
        room = MOST_AT_ONCE - len(self._running)
        claimed = await self._inbox.with_store(Store.claim, room, time.time()) if room else []
        for delivery in claimed:
            task = self._loop.create_task(self._run(delivery))
            self._running.add(task)
            task.add_done_callback(self._ended)
        return bool(claimed)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        self._woken.set()

    async def _pause(self, seconds: float) -> None:
        if self._stopping:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(max(seconds, 0.0), LOOK_SECONDS)):
                await self._woken.wait()

    async def _run(self, delivery: Kept) -> None:
        if delivery.starts > MOST_STARTS:
            logger.error("%s was cut short %d times and is given up", plain(delivery.delivery_id), delivery.starts - 1)
            await self._record(Store.failed, delivery.number, time.time(), "cut short too often")
        elif await self._succeeds(delivery):
            await self._record(Store.done, delivery.number, time.time())
        elif delivery.starts <= len(DELAYS):
            await self._record(Store.again, delivery.number, time.time() + DELAYS[delivery.starts - 1], "failed")
        else:
            logger.error("%s failed %d times and is given up", plain(delivery.delivery_id), delivery.starts)
            await self._record(Store.failed, delivery.number, time.time(), "failed")

    async def _succeeds(self, delivery: Kept) -> bool:
        """Run a delivery. Any exception is a failure: otherwise the delivery would stay running until a restart."""
        try:
            return await self._work(delivery)
        except Exception:
            logger.exception("%s could not be run", plain(delivery.delivery_id))
            return False

    async def _record(self, use: Callable[..., None], *given: object) -> None:
        """Record the outcome of a delivery, and retry indefinitely: a full disk must not make a delivery run twice."""
        while True:
            try:
                await self._inbox.with_store(use, *given)
            except sqlite3.Error as error:
                self._record_trouble.tell(error)
                await asyncio.sleep(LOOK_SECONDS)
            else:
                self._record_trouble.is_over()
                return


def _close_all(opened: "list[Store | Turn]") -> None:
    while opened:
        opened.pop().close()
