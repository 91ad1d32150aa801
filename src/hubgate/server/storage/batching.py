"""Batches the rows of a hot statement: rows submitted during one run are executed together in the next."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from hubgate.server.errors import StorageUnavailable
from hubgate.server.storage.database import Batch, Row
from hubgate.server.storage.sqltext import Params, Value, with_postgres_parts

LARGEST_RUN = 500

RunStatement = Callable[[str, Sequence[Any]], Awaitable[Sequence[Row]]]
_Waiting = tuple[Value, Params, "asyncio.Future[Row | None]"]


def statement_for_all(op: Batch) -> str:
    """The SQL that executes all rows of a run. Its parameters are the columns, as arrays."""
    arrays = ", ".join(f"${n}::{kind}[]" for n, kind in enumerate(op.columns.values(), 1))
    batch = f"WITH batch AS (SELECT * FROM unnest({arrays}) AS batch({', '.join(op.columns)}))"
    if not op.then:
        return with_postgres_parts(f"{batch} {op.sql}")
    done = f"SELECT * FROM batch WHERE {op.key} IN (SELECT {op.key} FROM changed)"
    sql = f"{batch}, changed AS ({op.sql}), done AS ({done}), also AS ({op.then}) SELECT * FROM changed"
    return with_postgres_parts(sql)


class Batcher:
    def __init__(self, op: Batch, run: RunStatement) -> None:
        self._op = op
        self._run = run
        self._waiting: list[_Waiting] = []
        self._running: asyncio.Task[None] | None = None
        self._sql = statement_for_all(op)

    async def submit(self, row: Params) -> Row | None:
        future: asyncio.Future[Row | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((row[self._op.key], row, future))
        if self._running is None:
            self._running = asyncio.create_task(self._drain())
        return await future

    async def _drain(self) -> None:
        try:
            while self._waiting:
                group = self._next_group()
                try:
                    await self._run_together(group)
                except StorageUnavailable as error:
                    _fail(group, error)
                except Exception:
                    await self._run_separately(group)
        finally:
            self._running = None

    def _next_group(self) -> list[_Waiting]:
        group: dict[Value, _Waiting] = {}
        later: list[_Waiting] = []
        for waiting in self._waiting:
            key = waiting[0]
            if key in group or len(group) == LARGEST_RUN:
                later.append(waiting)
            else:
                group[key] = waiting
        self._waiting = later
        # Sorted, because two processes that lock the same rows in different orders would deadlock.
        return sorted(group.values(), key=lambda waiting: str(waiting[0]))

    async def _run_together(self, group: list[_Waiting]) -> None:
        columns = [[row[name] for _, row, _ in group] for name in self._op.columns]
        answers = {answer[self._op.key]: answer for answer in await self._run(self._sql, columns)}
        for key, _, future in group:
            if not future.cancelled():
                future.set_result(answers.get(key))

    async def _run_separately(self, group: list[_Waiting]) -> None:
        """Run each row separately after an invalid row has failed the whole group."""
        for waiting in group:
            try:
                await self._run_together([waiting])
            except Exception as error:
                _fail([waiting], error)


def _fail(group: list[_Waiting], error: Exception) -> None:
    for _, _, future in group:
        if not future.cancelled():
            future.set_exception(error)
