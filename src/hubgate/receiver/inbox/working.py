"""Putting deliveries into the inbox, and working through it on the loop that serves."""

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
# After a handler failed so often, so many seconds pass; after the last it is given up.
DELAYS = (5.0, 30.0, 120.0, 600.0, 1800.0)
# One that takes the process down with it is not started for ever.
MOST_STARTS = 12
# What other processes put in, and their deaths, are noticed this often.
LOOK_SECONDS = 1.0
SWEEP_SECONDS = 3600.0
STOP_SECONDS = 10.0

logger = logging.getLogger("hubgate.receiver")


class Inbox:
    """`work` runs one delivery and says whether it succeeded. Usable from several loops; one of them works."""

    def __init__(self, file: Path, work: Callable[[Kept], Awaitable[bool]]) -> None:
        self.file, self._work = file, work
        # SQLite waits for the disk, so it has a thread of its own, one, in which its transactions never meet.
        self._thread: ThreadPoolExecutor | None = None
        self._store: Store | None = None
        self._turn: Turn | None = None
        self._worker: _Worker | None = None
        self._opened: list[Store | Turn] = []
        weakref.finalize(self, _close_all, self._opened)

    def check(self) -> None:
        """Raises OSError where there can be no such file, before anybody is told that deliveries are taken."""
        try:
            Store(self.file).close()
        except sqlite3.Error as error:
            folder = self.file.parent
            cure = "Say another with inbox=" if folder.is_dir() else f"Make its folder: mkdir -p {folder}"
            raise OSError(f"The inbox {self.file} cannot be used: {error}. {cure}") from None

    async def put(self, path: str, delivery_id: str, headers: RawHeaders, body: bytes) -> str:
        """The state it is in then, on disk. Raises sqlite3.Error where it could not be written."""
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

    def _let_go(self, _: Store) -> None:
        if self._turn is not None:
            self._turn.let_go()

    def start(self) -> None:
        """Work through it on this loop, unless a loop that still runs does."""
        if self._worker is None or not self._worker.alive:
            self._worker = _Worker(self, self._work)

    async def stop(self) -> None:
        """Running handlers get a while to end; what does not is run again next time."""
        worker, self._worker = self._worker, None
        if worker is not None and worker.here:
            await worker.stop()
            await self.with_store(self._let_go)

    async def settle(self) -> None:
        """Until nothing runs and nothing that is due waits."""
        while await self.with_store(Store.pending, time.time()):  # noqa: ASYNC110 (other processes give no event)
            await asyncio.sleep(0.02)

    def close(self) -> None:
        """It opens again when it is used again."""
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
        self._trouble_noting = Trouble("The end of a delivery could not be noted; trying again")
        self._task = self._loop.create_task(self._go_on(), name="hubgate-inbox")

    @property
    def alive(self) -> bool:
        return self._loop.is_running() and not self._task.done()

    @property
    def here(self) -> bool:
        return self._loop is asyncio.get_running_loop()

    def wake(self) -> None:
        # Its loop may have ended.
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

    async def _go_on(self) -> None:
        while not self._stopping:
            try:
                await self._work_through()
            except sqlite3.Error as error:
                self._trouble.tell(error)
                self._woken.clear()
                await self._pause(LOOK_SECONDS)

    async def _work_through(self) -> None:
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
            if not await self._begin_some():
                due = await self._inbox.with_store(Store.next_due)
                self._trouble.is_over()
                full = len(self._running) >= MOST_AT_ONCE
                await self._pause(LOOK_SECONDS if due is None or full else due - time.time())

    async def _begin_some(self) -> bool:
        self._woken.clear()
        room = MOST_AT_ONCE - len(self._running)
        kept = await self._inbox.with_store(Store.claim, room, time.time()) if room else []
        for one in kept:
            task = self._loop.create_task(self._run(one))
            self._running.add(task)
            task.add_done_callback(self._ended)
        return bool(kept)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        self._woken.set()

    async def _pause(self, seconds: float) -> None:
        if self._stopping:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(max(seconds, 0.0), LOOK_SECONDS)):
                await self._woken.wait()

    async def _run(self, one: Kept) -> None:
        if one.starts > MOST_STARTS:
            logger.error("%s was cut short %d times and is given up", plain(one.delivery_id), one.starts - 1)
            await self._note(Store.failed, one.number, time.time(), "cut short too often")
        elif await self._worked(one):
            await self._note(Store.done, one.number, time.time())
        elif one.starts <= len(DELAYS):
            await self._note(Store.again, one.number, time.time() + DELAYS[one.starts - 1], "failed")
        else:
            logger.error("%s failed %d times and is given up", plain(one.delivery_id), one.starts)
            await self._note(Store.failed, one.number, time.time(), "failed")

    async def _worked(self, one: Kept) -> bool:
        """Whatever goes wrong has an end that is written down: left as running it would wait for the next start."""
        try:
            return await self._work(one)
        except Exception:
            logger.exception("%s could not be run", plain(one.delivery_id))
            return False

    async def _note(self, use: Callable[..., None], *given: object) -> None:
        """A full disk must not make it run twice, so this is tried for as long as the process lives."""
        while True:
            try:
                await self._inbox.with_store(use, *given)
            except sqlite3.Error as error:
                self._trouble_noting.tell(error)
                await asyncio.sleep(LOOK_SECONDS)
            else:
                self._trouble_noting.is_over()
                return


def _close_all(opened: "list[Store | Turn]") -> None:
    while opened:
        opened.pop().close()
