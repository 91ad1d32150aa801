"""A connection to the SQLite file: its configuration, the execution of a unit, and the translation of errors."""

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from hubgate.server.errors import StorageUnavailable
from hubgate.server.storage.database import ConstraintViolated, ForeignAwait, Row, Unit, UnitClosed
from hubgate.server.storage.signals import Signal
from hubgate.server.storage.sqltext import NO_PARAMS, Params, RowStatement, Statement, as_sqlite_join

T = TypeVar("T")


def connect_writer(path: Path) -> sqlite3.Connection:
    return _connect(path, busy_timeout=0.0)


def connect_reader(path: Path) -> sqlite3.Connection:
    connection = _connect(path, busy_timeout=1.0)
    connection.execute("PRAGMA query_only=ON")
    return connection


def _connect(path: Path, busy_timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=busy_timeout, isolation_level=None, check_same_thread=False, cached_statements=512
    )
    connection.row_factory = sqlite3.Row
    try:
        # fullfsync: on macOS a plain fsync does not reach the disk.
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "fullfsync=ON", "foreign_keys=ON", "temp_store=MEMORY"):
            connection.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


class SqliteTx:
    """A transaction on SQLite. Its coroutines never suspend."""

    __slots__ = ("_execute", "_execute_many", "failed", "is_open", "signals")

    def __init__(self, connection: sqlite3.Connection, signals: set[Signal] | None = None) -> None:
        self._execute = connection.execute
        self._execute_many = connection.executemany
        self.signals = set() if signals is None else signals
        self.failed: Exception | None = None
        self.is_open = True

    async def one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        # Fetching all rows resets the statement; an open statement would pin its snapshot.
        rows = self._run(sql, params).fetchall()
        return rows[0] if rows else None

    async def all(self, sql: str, params: Params = NO_PARAMS) -> Sequence[Row]:
        return self._run(sql, params).fetchall()

    async def exec(self, sql: str, params: Params = NO_PARAMS) -> int:
        cursor = self._run(sql, params)
        cursor.fetchall()
        return max(cursor.rowcount, 0)

    async def exec_many(self, sql: str, rows: Sequence[Params]) -> None:
        self._run_many(sql, rows)

    async def exec_together(self, statements: Sequence[Statement]) -> None:
        for sql, params in statements:
            await self.exec(sql, params)

    async def each(self, op: RowStatement, rows: Sequence[Params], params: Params = NO_PARAMS) -> Sequence[Row]:
        if not op.returns_rows:
            self._run_many(op.sql, [{**params, **row} for row in rows] if params else rows)
            return []
        if sql := as_sqlite_join(op):
            (column,) = op.columns
            return self._run(sql, {**params, "rows": json.dumps([row[column] for row in rows])}).fetchall()
        return [found for row in rows for found in self._run(op.sql, {**params, **row}).fetchall()]

    def signal(self, signal: Signal) -> None:
        self.signals.add(signal)

    def _run(self, sql: str, params: Params) -> sqlite3.Cursor:
        if not self.is_open:
            raise UnitClosed
        try:
            return self._execute(sql, params)
        except sqlite3.Error as error:
            self.failed = translated(error)
            raise self.failed from error

    def _run_many(self, sql: str, rows: Sequence[Params]) -> None:
        if not self.is_open:
            raise UnitClosed
        try:
            self._execute_many(sql, rows)
        except sqlite3.Error as error:
            self.failed = translated(error)
            raise self.failed from error


def run_to_end(unit: Unit[T], connection: sqlite3.Connection, signals: set[Signal] | None = None) -> T:
    tx = SqliteTx(connection, signals)
    coroutine = unit(tx)
    try:
        coroutine.send(None)
    except StopIteration as end:
        if tx.failed is not None:
            raise tx.failed from None
        result: T = end.value
        return result
    finally:
        tx.is_open = False
    coroutine.close()
    raise ForeignAwait


def read_in_snapshot(connection: sqlite3.Connection, unit: Unit[T]) -> T:
    try:
        connection.execute("BEGIN")
    except sqlite3.Error as error:
        raise translated(error) from error
    try:
        return run_to_end(unit, connection)
    finally:
        connection.rollback()


_UNAVAILABLE = {
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


def primary_code(error: sqlite3.Error) -> int:
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def translated(error: sqlite3.Error) -> Exception:
    if isinstance(error, sqlite3.IntegrityError):
        return ConstraintViolated(str(error))
    if primary_code(error) in _UNAVAILABLE:
        return StorageUnavailable()
    return error
