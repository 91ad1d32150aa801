"""Look-ups by key per second on PostgreSQL, in a table of a hundred thousand rows."""

import asyncio
import contextlib
from functools import partial
from typing import Any

import asyncpg

from bench import asyncpg_raw, workload
from bench.harness import Operation, Table, drive, run_interleaved, table, warm_up
from bench.workspace import Workspace
from hubgate.server.storage.engines import open_database
from hubgate.server.storage.postgres import CONNECTIONS

TURN = 0.6
RAW_ALONE = "raw asyncpg fetchrow, 1 caller"


def measure(workspace: Workspace) -> list[Table]:
    url = workspace.postgres_url
    rows, keys = workload.stored_rows()
    with asyncio.Runner() as runner, contextlib.ExitStack() as closing:
        runner.run(asyncpg_raw.fill_table(url, rows))
        db = runner.run(open_database(url))
        pool = runner.run(asyncpg_raw.create_pool(url))
        connections = [runner.run(asyncpg.connect(url)) for _ in range(CONNECTIONS)]
        for opened in (db, pool, *connections):
            closing.callback(lambda opened: runner.run(opened.close()), opened)

        async def raw(free: list[Any]) -> object:
            """Look up a row on an unused connection; there are as many connections as callers."""
            connection = free.pop()
            row = await connection.fetchrow(asyncpg_raw.READ, next(keys)["id"])
            free.append(connection)
            return row

        def turn(callers: int, operation: Operation) -> float:
            return runner.run(
                drive(operation, callers, workspace.budget.seconds(TURN), workspace.budget.max_operations)
            )

        many = workload.CALLERS
        contestants = {
            RAW_ALONE: partial(turn, 1, partial(raw, connections[:1])),
            "db.one, 1 caller": partial(turn, 1, lambda: db.one(workload.READ, next(keys))),
            f"raw, {CONNECTIONS} connections and callers": partial(turn, CONNECTIONS, partial(raw, connections[:])),
            f"asyncpg pool, {many} callers": partial(turn, many, lambda: _pooled(pool, next(keys)["id"])),
            f"db.one, {many} callers": partial(turn, many, lambda: db.one(workload.READ, next(keys))),
        }
        samples = run_interleaved(warm_up(contestants), workspace.budget.rounds)
    return [table("PostgreSQL look-ups by key", "look-ups/s", RAW_ALONE, samples)]


async def _pooled(pool: Any, key: str) -> object:
    async with pool.acquire() as connection:
        return await connection.fetchrow(asyncpg_raw.READ, key)
