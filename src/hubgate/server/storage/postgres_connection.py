"""A connection to PostgreSQL: the execution of a unit, and the translation of errors.

Errors are translated where a statement runs, never around a unit's code: a unit that raises an OSError has not lost
its connection.
"""

from collections.abc import Awaitable, Callable, Collection, Generator, Sequence
from typing import Any, TypeVar

import asyncpg

from hubgate.server import failpoint
from hubgate.server.errors import OutcomeUnknown, StorageUnavailable
from hubgate.server.storage.database import ConstraintViolated, ForeignAwait, Row, Unit, UnitClosed
from hubgate.server.storage.signals import Signal
from hubgate.server.storage.sqltext import (
    NO_PARAMS,
    Params,
    RowStatement,
    Statement,
    as_one_statement,
    as_single_statement,
    positional,
)

T = TypeVar("T")
# asyncpg has no type annotations.
Connection = Any


class ConnectionLost(Exception):
    """The connection was lost before COMMIT was sent. Nothing was saved, so the unit may run again on another one."""


class TransactionConflict(Exception):
    """The transaction conflicts with a concurrent one. PostgreSQL's documentation says to run it again."""


_LOST = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    # asyncpg raises this if a connection dies during its internal bookkeeping.
    asyncpg.InternalClientError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)
_CONFLICT = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError, asyncpg.InvalidCachedStatementError)
# The server responds but cannot execute: too slow, out of disk or connections, a standby, failing disks.
_UNABLE = (
    TimeoutError,
    asyncpg.QueryCanceledError,
    asyncpg.LockNotAvailableError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.PostgresSystemError,
    asyncpg.InternalServerError,
)


def translated(error: Exception) -> Exception:
    if isinstance(error, asyncpg.IntegrityConstraintViolationError):
        return ConstraintViolated(str(error))
    # TimeoutError is an OSError, so the order matters.
    if isinstance(error, _UNABLE):
        return StorageUnavailable()
    if isinstance(error, _CONFLICT):
        return TransactionConflict()
    if isinstance(error, _LOST):
        return ConnectionLost()
    return error


async def translating_errors(statement: Awaitable[T]) -> T:
    try:
        return await statement
    except Exception as error:
        raise translated(error) from error


class PostgresTx:
    __slots__ = ("_connection", "busy", "failed", "is_open", "signals")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.busy = False
        self.failed: Exception | None = None
        self.is_open = True
        self.signals: set[Signal] = set()

    def signal(self, signal: Signal) -> None:
        self.signals.add(signal)

    async def one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        text, names = positional(sql)
        row: Row | None = await self._run(self._connection.fetchrow, text, [params[name] for name in names])
        return row

    async def all(self, sql: str, params: Params = NO_PARAMS) -> Sequence[Row]:
        text, names = positional(sql)
        rows: Sequence[Row] = await self._run(self._connection.fetch, text, [params[name] for name in names])
        return rows

    async def exec(self, sql: str, params: Params = NO_PARAMS) -> int:
        text, names = positional(sql)
        status: str = await self._run(self._connection.execute, text, [params[name] for name in names])
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() and not status.startswith("SELECT") else 0

    async def exec_many(self, sql: str, rows: Sequence[Params]) -> None:
        text, names = positional(sql)
        await self._run(self._connection.executemany, text, [[[row[name] for name in names] for row in rows]])

    async def exec_together(self, statements: Sequence[Statement]) -> None:
        text, parameters = as_one_statement(tuple(sql for sql, _ in statements))
        await self._run(
            self._connection.execute, text, [statements[position][1][name] for position, name in parameters]
        )

    async def each(self, op: RowStatement, rows: Sequence[Params], params: Params = NO_PARAMS) -> Sequence[Row]:
        if not rows:
            return []
        text, names = as_single_statement(op)
        columns = [[row[name] for row in rows] for name in op.columns]
        found: Sequence[Row] = await self._run(
            self._connection.fetch, text, [*columns, *(params[name] for name in names)]
        )
        return found

    async def _run(self, method: Any, text: str, arguments: list[Any]) -> Any:
        if not self.is_open:
            raise UnitClosed
        self.busy = True
        try:
            return await translating_errors(method(text, *arguments))
        except Exception as error:
            self.failed = error
            raise
        finally:
            self.busy = False


class _GuardedUnit:
    """Runs a unit and rejects it if it suspends outside a statement (see ForeignAwait)."""

    def __init__(self, unit: Unit[Any], tx: PostgresTx) -> None:
        self._unit, self._tx = unit, tx

    def __await__(self) -> Generator[Any, Any, Any]:
        try:
            result = yield from self._steps()
        finally:
            self._tx.is_open = False
        if self._tx.failed is not None:
            raise self._tx.failed
        return result

    def _steps(self) -> Generator[Any, Any, Any]:
        coroutine = self._unit(self._tx)
        value: Any = None
        error: BaseException | None = None
        while True:
            try:
                awaited = coroutine.send(value) if error is None else coroutine.throw(error)
            except StopIteration as end:
                return end.value
            if not self._tx.busy:
                coroutine.close()
                raise ForeignAwait
            value = error = None
            try:
                value = yield awaited
            except BaseException as caught:
                error = caught


async def write_in_transaction(connection: Connection, unit: Unit[T], send: Callable[[Collection[Signal]], None]) -> T:
    tx = PostgresTx(connection)
    result = await _run_within(connection, "BEGIN", unit, tx)
    failpoint.hit("storage.before_commit")
    try:
        await translating_errors(connection.execute("COMMIT"))
    except (ConnectionLost, StorageUnavailable) as error:
        raise OutcomeUnknown from error
    failpoint.hit("storage.after_commit")
    if tx.signals:
        send(tx.signals)
    return result


async def read_in_snapshot(connection: Connection, unit: Unit[T]) -> T:
    begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    result = await _run_within(connection, begin, unit, PostgresTx(connection))
    await _roll_back(connection)
    return result


async def _run_within(connection: Connection, begin: str, unit: Unit[T], tx: PostgresTx) -> T:
    """Begin a transaction and run a unit in it. The transaction stays open unless the unit failed."""
    await translating_errors(connection.execute(begin))
    try:
        result: T = await _GuardedUnit(unit, tx)
    except Exception:
        await _roll_back(connection)
        raise
    return result


async def _roll_back(connection: Connection) -> None:
    if not connection.is_closed():
        await translating_errors(connection.execute("ROLLBACK"))
