"""The networked engine: PostgreSQL 15 or newer through asyncpg.

A few connections of our own, the most recently used first, so that the busy ones stay warm; no reset query between
uses. A write unit is a transaction at the default isolation. A connection that broke before COMMIT was sent costs the
caller nothing: the unit runs again on a fresh one. One that breaks while committing is reported as such.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from typing import Any, TypeVar

import asyncpg

from hubgate.server import failpoint
from hubgate.server.errors import OutcomeUnknown, StorageUnavailable
from hubgate.server.storage.batching import Batcher
from hubgate.server.storage.database import Batch, ConstraintViolated, ForeignAwait, Row, Unit
from hubgate.server.storage.sqltext import NO_PARAMS, Params, positional

T = TypeVar("T")
Connection = Any

CONNECTIONS = 12
CONNECT_SECONDS = 3.0
STATEMENT_SECONDS = 15.0
QUEUE_SECONDS = 5.0
ATTEMPTS = 3

# Another transaction won a race the engine could not order; running the unit again is the documented answer.
_RACE_LOST = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
# Connection lost or refused, server starting or stopping, out of connections or disk. TimeoutError is an OSError.
_AWAY = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    # What asyncpg says when a connection dies in the middle of its own bookkeeping.
    asyncpg.InternalClientError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
)


class PostgresDatabase:
    def __init__(self, url: str, connections: int = CONNECTIONS) -> None:
        self._url = url
        self._idle: list[Connection] = []
        self._slots = asyncio.Semaphore(connections)
        self._batchers: dict[str, Batcher] = {}

    async def write(self, unit: Unit[T]) -> T:
        return await self._again_if_broken(lambda connection: self._transact(connection, unit))

    async def write_long(self, unit: Unit[T]) -> T:
        return await self.write(unit)

    async def read(self, unit: Unit[T]) -> T:
        return await self._again_if_broken(lambda connection: _read_in_snapshot(connection, unit))

    async def read_long(self, unit: Unit[T]) -> T:
        return await self.read(unit)

    async def one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        return await self._again_if_broken(lambda connection: _PostgresTx(connection).one(sql, params))

    async def batch(self, op: Batch, row: Params) -> Row | None:
        batcher = self._batchers.get(op.name)
        if batcher is None:
            batcher = self._batchers[op.name] = Batcher(op, self._run_statement)
        return await batcher.submit(row)

    async def tables(self) -> frozenset[str]:
        async def names(connection: Connection) -> frozenset[str]:
            rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
            return frozenset(row[0] for row in rows)

        return await self._again_if_broken(names)

    async def close(self) -> None:
        for connection in self._idle:
            with contextlib.suppress(*_AWAY):
                await connection.close(timeout=1)
        self._idle.clear()

    async def _run_statement(self, sql: str, args: Sequence[Any]) -> Sequence[Row]:
        async def run(connection: Connection) -> Sequence[Row]:
            try:
                rows: Sequence[Row] = await connection.fetch(sql, *args)
            except _AWAY as error:
                # A single statement commits by itself, so its fate is open once it was sent.
                raise OutcomeUnknown from error
            except asyncpg.IntegrityConstraintViolationError as error:
                raise ConstraintViolated(str(error)) from error
            return rows

        return await self._again_if_broken(run)

    async def _transact(self, connection: Connection, unit: Unit[T]) -> T:
        await connection.execute("BEGIN")
        try:
            result: T = await _Guarded(unit, connection)
        except Exception:
            if not connection.is_closed():
                await connection.execute("ROLLBACK")
            raise
        failpoint.hit("storage.before_commit")
        try:
            await connection.execute("COMMIT")
        except _RACE_LOST:
            raise
        except _AWAY as error:
            raise OutcomeUnknown from error
        failpoint.hit("storage.after_commit")
        return result

    async def _again_if_broken(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with self._connection() as connection:
                    return await work(connection)
            except _RACE_LOST as error:
                if attempt == ATTEMPTS:
                    raise StorageUnavailable from error
            except TimeoutError as error:
                # It hangs; asking again would only make the caller wait longer.
                raise StorageUnavailable from error
            except _AWAY as error:
                # After a restart every idle connection is dead: drop them all rather than meet them one by one.
                self._forget_idle()
                if attempt == ATTEMPTS:
                    raise StorageUnavailable from error
        raise AssertionError("unreachable")

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        async with self._slot():
            connection = self._warmest_idle() or await self._connect()
            try:
                yield connection
            except BaseException as error:
                # What was in flight when a caller was cancelled is unknown; such a connection is not reused.
                if isinstance(error, (asyncio.CancelledError, OutcomeUnknown, *_AWAY)):
                    connection.terminate()
                raise
            finally:
                if not connection.is_closed():
                    self._idle.append(connection)

    @contextlib.asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        """Behind a database that hangs, callers are turned away rather than heaped up."""
        try:
            async with asyncio.timeout(QUEUE_SECONDS):
                await self._slots.acquire()
        except TimeoutError:
            raise StorageUnavailable from None
        try:
            yield
        finally:
            self._slots.release()

    async def _connect(self) -> Connection:
        return await asyncpg.connect(
            self._url,
            timeout=CONNECT_SECONDS,
            command_timeout=STATEMENT_SECONDS,
            statement_cache_size=512,
            server_settings={"application_name": "hubgate", "timezone": "UTC"},
        )

    def _warmest_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return None

    def _forget_idle(self) -> None:
        for connection in self._idle:
            connection.terminate()
        self._idle.clear()


class _PostgresTx:
    __slots__ = ("_connection", "busy", "failed")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.busy = False
        self.failed: Exception | None = None

    async def one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        text, names = positional(sql)
        row: Row | None = await self._sent(self._connection.fetchrow(text, *[params[name] for name in names]))
        return row

    async def all(self, sql: str, params: Params = NO_PARAMS) -> Sequence[Row]:
        text, names = positional(sql)
        rows: Sequence[Row] = await self._sent(self._connection.fetch(text, *[params[name] for name in names]))
        return rows

    async def exec(self, sql: str, params: Params = NO_PARAMS) -> int:
        text, names = positional(sql)
        status: str = await self._sent(self._connection.execute(text, *[params[name] for name in names]))
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    async def exec_many(self, sql: str, rows: Sequence[Params]) -> None:
        text, names = positional(sql)
        await self._sent(self._connection.executemany(text, [[row[name] for name in names] for row in rows]))

    async def _sent(self, statement: Awaitable[Any]) -> Any:
        self.busy = True
        try:
            return await statement
        except asyncpg.IntegrityConstraintViolationError as error:
            self.failed = ConstraintViolated(str(error))
            raise self.failed from error
        except Exception as error:
            self.failed = error
            raise
        finally:
            self.busy = False


class _Guarded:
    """Drives a unit and refuses it when it suspends outside a statement (see ForeignAwait)."""

    def __init__(self, unit: Unit[Any], connection: Connection) -> None:
        self._unit = unit
        self._tx = _PostgresTx(connection)

    def __await__(self) -> Generator[Any, Any, Any]:
        coroutine = self._unit(self._tx)
        value: Any = None
        error: BaseException | None = None
        while True:
            try:
                awaited = coroutine.send(value) if error is None else coroutine.throw(error)
            except StopIteration as end:
                if self._tx.failed is not None:
                    raise self._tx.failed from None
                return end.value
            if not self._tx.busy:
                coroutine.close()
                raise ForeignAwait
            value = error = None
            try:
                value = yield awaited
            except BaseException as caught:
                error = caught


async def _read_in_snapshot(connection: Connection, unit: Unit[T]) -> T:
    await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        result: T = await _Guarded(unit, connection)
    finally:
        if not connection.is_closed():
            await connection.execute("ROLLBACK")
    return result
