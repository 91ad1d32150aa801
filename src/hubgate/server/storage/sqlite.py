"""The embedded engine: one SQLite file in WAL mode with synchronous=FULL.

Reads by key run on the event loop: such a read takes a few microseconds, a switch to a thread takes fifty. Write units
are queued (`sqlite_writer.py`). Waiting units run one after another on the loop, each in a savepoint that rolls back
alone, and one COMMIT in a thread makes the whole group durable before any caller resumes. While the disk syncs, the
loop serves reads and the next group forms.
"""

import asyncio
import re
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TypeVar

from hubgate.server.clock import system_clock
from hubgate.server.jobs.caller import current_job_caller
from hubgate.server.jobs.slots import Slots
from hubgate.server.storage.database import TOO_MANY_READS, Batch, DatabaseFacts, Row, Tx, Unit
from hubgate.server.storage.fairlock import FairLock
from hubgate.server.storage.signals import POLL_SECONDS, Fifos, Listening, OnSignal
from hubgate.server.storage.sqlite_connection import (
    SqliteTx,
    connect_reader,
    read_in_snapshot,
    translated,
)
from hubgate.server.storage.sqlite_text_index import SqliteTextIndex
from hubgate.server.storage.sqlite_writer import LOCK_TIMEOUT_SECONDS, SqliteWriter
from hubgate.server.storage.sqltext import NO_PARAMS, Params, RowStatement, require_read

T = TypeVar("T")

# Concurrent lists and searches, in total and per caller. Each may occupy a CPU core.
LONG_READS, LONG_READS_PER_CALLER = 3, 1


class SqliteDatabase:
    text_index = SqliteTextIndex()
    poll_seconds = POLL_SECONDS

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = FairLock(path)
        # Switching a new file to WAL needs exclusive access, and SQLite does not wait for it.
        self._lock.acquire(LOCK_TIMEOUT_SECONDS)
        try:
            self._fifos = Fifos(path)
            self._writer = SqliteWriter(path, self._lock, self._fifos.send)
            self._reader = connect_reader(path)
        finally:
            self._lock.release()
        self._lookup_tx = SqliteTx(self._reader)
        self._idle_readers: list[sqlite3.Connection] = []
        self._read_threads = ThreadPoolExecutor(LONG_READS, "sqlite-read")
        self._long_reads = Slots(LONG_READS, LONG_READS_PER_CALLER, TOO_MANY_READS)

    async def write(self, unit: Unit[T]) -> T:
        return await self._writer.run(unit, long=False)

    async def write_long(self, unit: Unit[T]) -> T:
        return await self._writer.run(unit, long=True)

    async def read(self, unit: Unit[T]) -> T:
        return read_in_snapshot(self._reader, unit)

    async def read_long(self, unit: Unit[T]) -> T:
        async with self._long_reads.acquire(current_job_caller.get().share_key):
            return await asyncio.get_running_loop().run_in_executor(self._read_threads, self._read_in_thread, unit)

    async def one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        require_read(sql)
        return await self._lookup_tx.one(sql, params)

    async def few(self, sql: str, params: Params = NO_PARAMS) -> Sequence[Row]:
        require_read(sql)
        return await self._lookup_tx.all(sql, params)

    async def each(self, op: RowStatement, rows: Sequence[Params]) -> Sequence[Row]:
        require_read(op.sql)
        return read_in_snapshot(self._reader, lambda tx: tx.each(op, rows))

    async def batch(self, op: Batch, row: Params) -> Row | None:
        statement, then = _single_row_statements(op)

        async def unit(tx: Tx) -> Row | None:
            found = await tx.one(statement, row)
            if found is not None and then:
                await tx.exec(then, row)
            return found

        return await self._writer.run(unit, long=False)

    async def listen(self, on_signal: OnSignal) -> Listening:
        return self._fifos.listen(on_signal)

    async def tables(self) -> frozenset[str]:
        rows = await self._lookup_tx.all("SELECT name FROM sqlite_master WHERE type = 'table'")
        return frozenset(row[0] for row in rows)

    async def damage(self) -> str | None:
        async def unit(tx: Tx) -> str | None:
            row = await tx.one("PRAGMA quick_check(1)")
            verdict = str(row[0]) if row else "no answer"
            return None if verdict == "ok" else verdict

        return await self.read_long(unit)

    async def facts(self) -> DatabaseFacts:
        # Changes are in the log until they are copied to the file.
        files = (self._path, self._path.with_name(f"{self._path.name}-wal"))
        size = sum(file.stat().st_size for file in files if file.exists())
        return DatabaseFacts(f"SQLite {sqlite3.sqlite_version}", size)

    async def clock(self) -> int:
        return system_clock()

    async def end_frozen_sessions(self, after_seconds: float = 0) -> None:
        """Nothing: only the system can unlock a file that a frozen process has locked."""

    async def close(self) -> None:
        await self._writer.close()
        await asyncio.to_thread(self._read_threads.shutdown)
        for connection in (self._reader, *self._idle_readers):
            connection.close()
        self._lock.close()

    def _read_in_thread(self, unit: Unit[T]) -> T:
        # list.pop is atomic, so two reader threads never share a connection.
        try:
            connection = self._idle_readers.pop()
        except IndexError:
            connection = self._open_reader()
        try:
            return read_in_snapshot(connection, unit)
        finally:
            self._idle_readers.append(connection)

    def _open_reader(self) -> sqlite3.Connection:
        try:
            return connect_reader(self._path)
        except sqlite3.Error as error:
            raise translated(error) from error


def _single_row_statements(op: Batch) -> tuple[str, str]:
    return _compiled(op.sql, op.then, tuple(op.columns))


@cache
def _compiled(sql: str, then: str, names: tuple[str, ...]) -> tuple[str, str]:
    """A batch's two statements for one row, which is given as parameters. The second may be empty."""
    return _single_row("batch", sql, names), then and _single_row("done", then, names)


def _single_row(relation: str, sql: str, names: tuple[str, ...]) -> str:
    # Only the columns that the statement reads: binding a parameter takes longer than reading it.
    used = [name for name in names if re.search(rf"\b{name}\b", sql)]
    columns, values = ", ".join(used), ", ".join(f":{name}" for name in used)
    return f"WITH {relation}({columns}) AS (VALUES ({values})) {sql}"
