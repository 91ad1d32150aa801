"""The only SQLite writer of this process: queues units, runs them in groups on the event loop, one COMMIT per group.

Every caller gets an outcome, even after a failure: the unit's result, the unit's error, or StorageUnavailable.
"""

import asyncio
import contextlib
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from hubgate.server import failpoint
from hubgate.server.errors import OutcomeUnknown, StorageUnavailable
from hubgate.server.storage.database import Unit
from hubgate.server.storage.fairlock import COURTESY_PAUSE, FairLock
from hubgate.server.storage.signals import Signal
from hubgate.server.storage.sqlite_connection import connect_writer, primary_code, run_to_end

T = TypeVar("T")

# How long a group may block the event loop before it commits.
GROUP_SECONDS = 0.004
# How long another process may lock the file before the hub responds with 503, including programs that do not use
# FairLock, such as a shell or a backup tool.
LOCK_TIMEOUT_SECONDS = 5.0


@dataclass(eq=False, slots=True)
class _Job:
    unit: Unit[Any]
    future: "asyncio.Future[Any]"
    long: bool
    # The caller's context: the unit runs in it, although another task may drain the queue.
    context: Context = field(default_factory=copy_context)
    outcome: Any = None
    error: BaseException | None = None
    signals: set[Signal] = field(default_factory=set)


class SqliteWriter:
    def __init__(self, path: Path, lock: FairLock, send: Callable[[Collection[Signal]], None]) -> None:
        self._lock, self._send = lock, send
        self._connection = connect_writer(path)
        self._thread = ThreadPoolExecutor(1, "sqlite-write")
        self._queue: deque[_Job] = deque()
        self._draining: asyncio.Task[None] | None = None
        self._closed = False

    async def run(self, unit: Unit[T], *, long: bool) -> T:
        if self._closed:
            raise StorageUnavailable
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.append(_Job(unit, future, long))
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain())
        return await future

    async def close(self) -> None:
        """Finish the running group and reject the units that still wait."""
        self._closed = True
        if self._draining is not None:
            await asyncio.wait([self._draining])
        await asyncio.to_thread(self._thread.shutdown)
        self._connection.close()

    async def _drain(self) -> None:
        try:
            while self._queue:
                group = await self._run_next_group()
                if signals := {signal for job in group if job.error is None for signal in job.signals}:
                    self._send(signals)
                for job in group:
                    _settle(job)
                if self._queue and self._lock.has_waiters():
                    await asyncio.sleep(COURTESY_PAUSE)
        finally:
            self._draining = None

    async def _run_next_group(self) -> list[_Job]:
        """Take units from the queue, run and commit them. Never raises: errors are stored in the jobs."""
        group: list[_Job] = []
        try:
            if self._closed:
                raise StorageUnavailable  # noqa: TRY301
            await self._take_turn()
            try:
                await self._run_group(group)
            finally:
                self._roll_back()
                self._lock.release()
        except Exception as error:
            if not group:
                # The lock or BEGIN failed, as it would for every waiting unit.
                group.extend(self._queue)
                self._queue.clear()
            _fail_all(group, StorageUnavailable(), error)
        return group

    async def _take_turn(self) -> None:
        if not self._lock.try_acquire():
            await self._in_thread(lambda: self._lock.acquire(LOCK_TIMEOUT_SECONDS))

    async def _run_group(self, group: list[_Job]) -> None:
        if self._queue[0].long:
            await self._in_thread(lambda: self._run_long(group))
            return
        await self._begin()
        self._run_waiting(group)
        await self._in_thread(lambda: self._commit(group))

    def _run_long(self, group: list[_Job]) -> None:
        self._begin_with_retries()
        group.append(self._queue.popleft())
        self._run_job(group[0])
        self._commit(group)

    def _run_waiting(self, group: list[_Job]) -> None:
        stop_at = time.monotonic() + GROUP_SECONDS
        while self._queue and not self._queue[0].long and time.monotonic() < stop_at:
            job = self._queue.popleft()
            if not job.future.cancelled():
                group.append(job)
                self._run_job(job)

    def _run_job(self, job: _Job) -> None:
        """Run one unit in a savepoint. Raises only if SQLite aborted the whole transaction, such as on a full disk."""
        execute = self._connection.execute
        execute("SAVEPOINT unit")
        try:
            job.outcome = job.context.run(run_to_end, job.unit, self._connection, job.signals)
        except BaseException as error:
            job.error = error
            execute("ROLLBACK TO unit")
        execute("RELEASE unit")

    async def _begin(self) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            # A program without FairLock has locked the file: wait in a thread.
            await self._in_thread(self._begin_with_retries)

    def _begin_with_retries(self) -> None:
        give_up_at = time.monotonic() + LOCK_TIMEOUT_SECONDS
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                if time.monotonic() > give_up_at:
                    raise
                time.sleep(0.005)
            else:
                return

    def _commit(self, group: list[_Job]) -> None:
        failpoint.hit("storage.before_commit")
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            # After a failed sync, a later recovery may still find the WAL frames.
            may_be_committed = primary_code(error) == sqlite3.SQLITE_IOERR
            _fail_all(group, OutcomeUnknown() if may_be_committed else StorageUnavailable(), error)
        failpoint.hit("storage.after_commit")

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                self._connection.rollback()

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)


def _settle(job: _Job) -> None:
    if job.future.cancelled():
        return
    if isinstance(job.error, StopIteration):
        # A future cannot carry StopIteration.
        job.future.set_exception(RuntimeError("a unit raised StopIteration"))
    elif job.error is not None:
        job.future.set_exception(job.error)
    else:
        job.future.set_result(job.outcome)


def _fail_all(group: list[_Job], refusal: StorageUnavailable, cause: Exception) -> None:
    """Fail the units of a group that was not committed. A unit that had already failed retains its own error."""
    refusal.__cause__ = cause
    for job in group:
        job.error = job.error or refusal
