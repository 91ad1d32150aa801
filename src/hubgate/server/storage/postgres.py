"""The networked engine: PostgreSQL 15 or newer through asyncpg.

A small connection pool that prefers the most recently used connection and runs no reset query between uses. A write
unit is a transaction at the default isolation level. If a connection breaks before COMMIT was sent, the unit runs again
on another connection. If a connection breaks during COMMIT, OutcomeUnknown is raised.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

import asyncpg

from hubgate.server.errors import OutcomeUnknown, StorageUnavailable
from hubgate.server.jobs.caller import current_job_caller
from hubgate.server.jobs.slots import Slots
from hubgate.server.storage.batching import Batcher
from hubgate.server.storage.database import TOO_MANY_READS, Batch, DatabaseFacts, Row, Unit
from hubgate.server.storage.postgres_connection import (
    Connection,
    ConnectionLost,
    PostgresTx,
    TransactionConflict,
    read_in_snapshot,
    translating_errors,
    write_in_transaction,
)
from hubgate.server.storage.postgres_signals import Channel
from hubgate.server.storage.postgres_text_index import PostgresTextIndex
from hubgate.server.storage.signals import POLL_SECONDS, Listening, OnSignal
from hubgate.server.storage.sqltext import NO_PARAMS, Params, RowStatement, require_read

T = TypeVar("T")

CONNECTIONS = 12
# Limit per caller. All lists and searches together use at most half of the connections; look-ups need free ones.
LONG_READS_PER_CALLER = 2
CONNECT_SECONDS = 3.0
STATEMENT_SECONDS = 15.0
# Less than a statement may wait for locks that several such transactions hold, one after the other.
IDLE_SECONDS = 5.0
QUEUE_SECONDS = 5.0
ATTEMPTS = 3
# The background process reads and writes by key. Without statistics, in the first minute of a new or fast growing
# table, the planner would read whole tables instead, in plans that are reused.
_BY_INDEX = {"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"}

# asyncpg describes a new statement before it runs it. A session whose client does not go on then is active for
# PostgreSQL and reads from its client: neither the timeout of idle transactions nor that of statements ends it.
_END_FROZEN = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND application_name = 'hubgate'
        AND state = 'active' AND wait_event = 'ClientRead'
        AND state_change < clock_timestamp() - make_interval(secs => $1)
"""


class PostgresDatabase:
    text_index = PostgresTextIndex()
    poll_seconds = POLL_SECONDS

    def __init__(self, url: str, connections: int = CONNECTIONS, *, by_index: bool = False) -> None:
        self._url = url
        self._planning = _BY_INDEX if by_index else {}
        self._idle: list[Connection] = []
        self._open = 0
        self._slots = asyncio.Semaphore(connections)
        self._long_reads = Slots(max(connections // 2, 1), LONG_READS_PER_CALLER, TOO_MANY_READS)
        self._batchers: dict[str, Batcher] = {}
        self._channel = Channel(url, self._run_statement)
        self._closed = False

    async def write(self, unit: Unit[T]) -> T:
        send = self._channel.send
        return await self._run_with_retries(lambda connection: write_in_transaction(connection, unit, send))

    async def write_long(self, unit: Unit[T]) -> T:
        return await self.write(unit)

    async def read(self, unit: Unit[T]) -> T:
        return await self._run_with_retries(lambda connection: read_in_snapshot(connection, unit))

    async def read_long(self, unit: Unit[T]) -> T:
        async with self._long_reads.acquire(current_job_caller.get().share_key):
            return await self.read(unit)

    async def one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        require_read(sql)
        return await self._run_with_retries(lambda connection: PostgresTx(connection).one(sql, params))

    async def few(self, sql: str, params: Params = NO_PARAMS) -> Sequence[Row]:
        require_read(sql)
        return await self._run_with_retries(lambda connection: PostgresTx(connection).all(sql, params))

    async def each(self, op: RowStatement, rows: Sequence[Params]) -> Sequence[Row]:
        require_read(op.sql)
        return await self._run_with_retries(lambda connection: PostgresTx(connection).each(op, rows))

    async def batch(self, op: Batch, row: Params) -> Row | None:
        batcher = self._batchers.get(op.name)
        if batcher is None:
            batcher = self._batchers[op.name] = Batcher(op, self._run_statement)
        return await batcher.submit(row)

    async def listen(self, on_signal: OnSignal) -> Listening:
        return self._channel.listen(on_signal)

    async def tables(self) -> frozenset[str]:
        sql = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        rows = await self._run_with_retries(lambda connection: PostgresTx(connection).all(sql))
        return frozenset(row[0] for row in rows)

    async def damage(self) -> str | None:
        """None: PostgreSQL checks pages when it reads them."""
        return None

    async def facts(self) -> DatabaseFacts:
        row = await self.one("SELECT current_setting('server_version'), pg_database_size(current_database())")
        version, size = (str(row[0]), int(row[1])) if row else ("", 0)
        # A distribution adds its own version in parentheses.
        return DatabaseFacts(f"PostgreSQL {version.split(' ')[0]}", size)

    async def clock(self) -> int:
        row = await self.one("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)")
        return int(row[0]) if row else 0

    async def end_frozen_sessions(self, after_seconds: float = IDLE_SECONDS) -> None:
        await self._run_statement(_END_FROZEN, [after_seconds])

    async def close(self) -> None:
        await self._channel.close()
        self._closed = True
        idle, self._idle = self._idle, []
        await asyncio.gather(*(connection.close(timeout=1) for connection in idle), return_exceptions=True)

    async def _run_statement(self, sql: str, arguments: Sequence[Any]) -> Sequence[Row]:
        async def run(connection: Connection) -> Sequence[Row]:
            try:
                rows: Sequence[Row] = await translating_errors(connection.fetch(sql, *arguments))
            except ConnectionLost as error:
                # A single statement commits itself, so its outcome is unknown once it was sent.
                raise OutcomeUnknown from error
            return rows

        return await self._run_with_retries(run)

    async def _run_with_retries(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with self._connection() as connection:
                    return await work(connection)
            except ConnectionLost as error:
                # After a restart of the database all idle connections are dead, so drop them all at once.
                self._drop_idle()
                if attempt == ATTEMPTS:
                    raise StorageUnavailable from error
            except TransactionConflict as error:
                if attempt == ATTEMPTS:
                    raise StorageUnavailable from error
        raise AssertionError("unreachable")

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        await self._take_slot()
        try:
            connection = self._warmest_idle() or await self._connect()
            try:
                yield connection
            except (asyncio.CancelledError, ConnectionLost, OutcomeUnknown, StorageUnavailable):
                # The state of the connection is unknown, so it must not be reused.
                connection.terminate()
                raise
            finally:
                self._return_to_pool(connection)
        finally:
            self._slots.release()

    async def _take_slot(self) -> None:
        """Wait for a free connection slot. If the database hangs, callers are rejected instead of piling up."""
        if self._closed:
            raise StorageUnavailable
        if not self._slots.locked():
            # A slot is free: avoid the cost of a timer.
            await self._slots.acquire()
            return
        try:
            async with asyncio.timeout(QUEUE_SECONDS):
                await self._slots.acquire()
        except TimeoutError:
            raise StorageUnavailable from None

    async def _connect(self) -> Connection:
        give_up_at = asyncio.get_running_loop().time() + QUEUE_SECONDS
        while True:
            try:
                connection = await asyncpg.connect(
                    self._url,
                    timeout=CONNECT_SECONDS,
                    command_timeout=STATEMENT_SECONDS,
                    statement_cache_size=512,
                    server_settings={
                        "application_name": "hubgate",
                        "timezone": "UTC",
                        # Compiling a statement takes longer than running it.
                        "jit": "off",
                        **self._planning,
                        # A unit awaits nothing but its statements: a client that is idle in a transaction was frozen or
                        # disconnected, and must not block others with its locks.
                        "idle_in_transaction_session_timeout": str(int(IDLE_SECONDS * 1000)),
                    },
                )
            except asyncpg.TooManyConnectionsError as error:
                # The server has no free connections: wait until one of this pool is returned.
                if not self._open or asyncio.get_running_loop().time() > give_up_at:
                    raise StorageUnavailable from error
                await asyncio.sleep(0.01)
                if idle := self._warmest_idle():
                    return idle
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
                raise StorageUnavailable from error
            else:
                self._open += 1
                return connection

    def _return_to_pool(self, connection: Connection) -> None:
        if self._closed:
            connection.terminate()
        if connection.is_closed():
            self._open -= 1
        else:
            self._idle.append(connection)

    def _warmest_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
            self._open -= 1
        return None

    def _drop_idle(self) -> None:
        for connection in self._idle:
            connection.terminate()
        self._open -= len(self._idle)
        self._idle.clear()
