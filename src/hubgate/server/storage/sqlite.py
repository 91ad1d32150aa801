"""The embedded engine: one SQLite file in WAL mode, synchronous=FULL.

Reads by key run on the event loop: they take microseconds, a hop to a thread takes fifty. Write units queue; those
waiting run one after another on the loop, each in a savepoint that rolls back alone, and one COMMIT in a thread makes
the whole group durable before any caller is woken. While the disk syncs, the loop serves reads and the next group
forms. Group commit therefore costs the author of a unit nothing.
"""

import asyncio
import contextlib
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hubgate.server import failpoint
from hubgate.server.errors import OutcomeUnknown, StorageUnavailable
from hubgate.server.storage.database import Batch, ConstraintViolated, ForeignAwait, Row, Unit
from hubgate.server.storage.fairlock import COURTESY_PAUSE, FairLock
from hubgate.server.storage.sqltext import NO_PARAMS, Params

T = TypeVar("T")

# How long one group may keep the loop busy before it commits.
GROUP_SECONDS = 0.004
# How long a stranger without our fair lock (a shell, a backup tool) may hold the file before we answer 503.
STRANGER_SECONDS = 5.0


@dataclass(eq=False, slots=True)
class _Job:
    unit: Unit[Any]
    future: "asyncio.Future[Any]"
    long: bool
    outcome: Any = None
    error: BaseException | None = None


class SqliteDatabase:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = FairLock(path)
        # Turning a new file to WAL needs it alone, and SQLite does not wait for that by itself.
        self._lock.acquire()
        try:
            self._writer = _connect(path, busy_timeout=0.0)
            self._reader = _connect(path, busy_timeout=1.0)
        finally:
            self._lock.release()
        self._write_tx = _SqliteTx(self._writer)
        self._read_tx = _SqliteTx(self._reader)
        self._idle_readers: list[sqlite3.Connection] = []
        self._write_thread = ThreadPoolExecutor(1, "sqlite-write")
        self._read_threads = ThreadPoolExecutor(2, "sqlite-read")
        self._queue: deque[_Job] = deque()
        self._draining: asyncio.Task[None] | None = None

    async def write(self, unit: Unit[T]) -> T:
        return await self._enqueue(unit, long=False)

    async def write_long(self, unit: Unit[T]) -> T:
        return await self._enqueue(unit, long=True)

    async def read(self, unit: Unit[T]) -> T:
        return _read_in_snapshot(self._reader, self._read_tx, unit)

    async def read_long(self, unit: Unit[T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._read_threads, self._read_in_thread, unit)

    async def one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        return await self._read_tx.one(sql, params)

    async def batch(self, op: Batch, row: Params) -> Row | None:
        statement = _single_row_statement(op)
        return await self._enqueue(lambda tx: tx.one(statement, row), long=False)

    async def tables(self) -> frozenset[str]:
        rows = await self._read_tx.all("SELECT name FROM sqlite_master WHERE type = 'table'")
        return frozenset(row[0] for row in rows)

    async def close(self) -> None:
        if self._draining is not None:
            await asyncio.wait([self._draining])
        self._read_threads.shutdown()
        self._write_thread.shutdown()
        for connection in (self._writer, self._reader, *self._idle_readers):
            connection.close()
        self._lock.close()

    async def _enqueue(self, unit: Unit[T], long: bool) -> T:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.append(_Job(unit, future, long))
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain())
        return await future

    async def _drain(self) -> None:
        try:
            while self._queue:
                await self._take_turn()
                group: list[_Job] = []
                try:
                    await self._run_group(group)
                except sqlite3.Error:
                    self._abandon(group)
                finally:
                    self._lock.release()
                for job in group:
                    _settle(job)
                if self._queue and self._lock.others_wait():
                    await asyncio.sleep(COURTESY_PAUSE)
        finally:
            self._draining = None

    async def _take_turn(self) -> None:
        if not self._lock.try_acquire():
            await self._in_write_thread(self._lock.acquire)

    async def _run_group(self, group: list[_Job]) -> None:
        """Move units from the queue to `group`, run them and commit."""
        if self._queue[0].long:
            group.append(self._queue.popleft())
            await self._in_write_thread(lambda: self._transact(group))
            return
        try:
            self._begin()
        except sqlite3.OperationalError:
            # A stranger holds the file: wait for it where waiting blocks no one.
            try:
                await self._in_write_thread(self._begin_patiently)
            except sqlite3.OperationalError:
                group.extend(self._queue)
                self._queue.clear()
                raise
        self._run_waiting(group)
        if self._writer.in_transaction:
            await self._in_write_thread(lambda: self._commit(group))

    def _abandon(self, group: list[_Job]) -> None:
        if self._writer.in_transaction:
            self._writer.rollback()
        _fail_all(group, StorageUnavailable())

    def _run_waiting(self, group: list[_Job]) -> None:
        stop_at = time.monotonic() + GROUP_SECONDS
        while self._queue and not self._queue[0].long and time.monotonic() < stop_at:
            job = self._queue.popleft()
            if job.future.cancelled():
                continue
            group.append(job)
            if not self._run_job(job):
                _fail_all(group, StorageUnavailable())
                return

    def _transact(self, group: list[_Job]) -> None:
        """A whole transaction away from the loop."""
        self._begin_patiently()
        for job in group:
            if not self._run_job(job):
                _fail_all(group, StorageUnavailable())
                return
        self._commit(group)

    def _run_job(self, job: _Job) -> bool:
        """Run one unit in a savepoint; False if SQLite gave up the whole transaction (full disk, say)."""
        execute = self._writer.execute
        execute("SAVEPOINT unit")
        try:
            job.outcome = _run_to_end(job.unit, self._write_tx)
        except BaseException as error:
            job.error = error
            if not self._writer.in_transaction:
                return False
            execute("ROLLBACK TO unit")
        execute("RELEASE unit")
        return True

    def _begin(self) -> None:
        self._writer.execute("BEGIN IMMEDIATE")

    def _begin_patiently(self) -> None:
        give_up_at = time.monotonic() + STRANGER_SECONDS
        while True:
            try:
                return self._begin()
            except sqlite3.OperationalError:
                if time.monotonic() > give_up_at:
                    raise
                time.sleep(0.005)

    def _commit(self, group: list[_Job]) -> None:
        failpoint.hit("storage.before_commit")
        try:
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                self._writer.execute("ROLLBACK")
            # After a failed sync the frames may still be found by a later recovery.
            torn = _primary_code(error) == sqlite3.SQLITE_IOERR
            _fail_all(group, OutcomeUnknown() if torn else StorageUnavailable())
        failpoint.hit("storage.after_commit")

    async def _in_write_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._write_thread, call)

    def _read_in_thread(self, unit: Unit[T]) -> T:
        # list.pop is atomic, so two reader threads never share a connection.
        try:
            connection = self._idle_readers.pop()
        except IndexError:
            connection = _connect(self._path, busy_timeout=1.0)
        try:
            return _read_in_snapshot(connection, _SqliteTx(connection), unit)
        finally:
            self._idle_readers.append(connection)


class _SqliteTx:
    """Never suspends: every coroutine here ends in its first step."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._execute = connection.execute
        self.failed: Exception | None = None

    async def one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        # Fetching to the end resets the statement; one left open would pin its snapshot.
        rows = self._executed(sql, params).fetchall()
        return rows[0] if rows else None

    async def all(self, sql: str, params: Params = NO_PARAMS) -> Sequence[Row]:
        return self._executed(sql, params).fetchall()

    async def exec(self, sql: str, params: Params = NO_PARAMS) -> int:
        return self._executed(sql, params).rowcount

    async def exec_many(self, sql: str, rows: Sequence[Params]) -> None:
        for row in rows:
            self._executed(sql, row)

    def begin(self) -> None:
        self._executed("BEGIN", NO_PARAMS)

    def _executed(self, sql: str, params: Params) -> sqlite3.Cursor:
        try:
            return self._execute(sql, params)
        except sqlite3.Error as error:
            self.failed = _translated(error)
            raise self.failed from error


def _connect(path: Path, busy_timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=busy_timeout, isolation_level=None, check_same_thread=False, cached_statements=512
    )
    connection.row_factory = sqlite3.Row
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _run_to_end(unit: Unit[T], tx: _SqliteTx) -> T:
    tx.failed = None
    coroutine = unit(tx)
    try:
        coroutine.send(None)
    except StopIteration as end:
        if tx.failed is not None:
            raise tx.failed from None
        result: T = end.value
        return result
    coroutine.close()
    raise ForeignAwait


def _read_in_snapshot(connection: sqlite3.Connection, tx: _SqliteTx, unit: Unit[T]) -> T:
    tx.begin()
    try:
        return _run_to_end(unit, tx)
    finally:
        connection.rollback()


def _settle(job: _Job) -> None:
    if job.future.cancelled():
        return
    if job.error is not None:
        job.future.set_exception(job.error)
    else:
        job.future.set_result(job.outcome)


def _fail_all(group: list[_Job], error: StorageUnavailable) -> None:
    """Nothing of this group was saved. A unit that had already refused by itself keeps its own reason."""
    for job in group:
        job.error = job.error or error


def _single_row_statement(op: Batch) -> str:
    columns = ", ".join(op.columns)
    values = ", ".join(f":{column}" for column in op.columns)
    return f"WITH batch({columns}) AS (VALUES ({values})) {op.sql}"


def _primary_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


_PASSING = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
}


def _translated(error: sqlite3.Error) -> Exception:
    if isinstance(error, sqlite3.IntegrityError):
        return ConstraintViolated(str(error))
    if _primary_code(error) in _PASSING:
        return StorageUnavailable()
    return error
