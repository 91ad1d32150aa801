"""PostgreSQL contestants that use asyncpg as its documentation shows."""

from typing import Any

import asyncpg

from bench import workload
from hubgate.server.storage.postgres import CONNECTIONS
from hubgate.server.storage.sqltext import positional

INSERT, UPDATE, READ = (positional(sql)[0] for sql in (workload.INSERT, workload.UPDATE, workload.READ))


async def transaction(connection: Any) -> object:
    row = workload.new_row()
    async with connection.transaction():
        await connection.execute(INSERT, row["id"], row["owner"])
        await connection.execute(UPDATE, row["id"])
        return await connection.fetchrow(READ, row["id"])


async def pooled_transaction(pool: Any) -> object:
    async with pool.acquire() as connection:
        return await transaction(connection)


async def create_pool(url: str) -> Any:
    """Create a pool with as many connections as the hub has."""
    return await asyncpg.create_pool(url, min_size=CONNECTIONS, max_size=CONNECTIONS)


async def fill_table(url: str, rows: list[tuple[str, str, int]]) -> None:
    """Create the table again and fill it before any statement is prepared.

    A statement prepared on an empty table gets a plan with a sequential scan, which lasts until the next autoanalyze,
    so the order of the contestants would affect the results.
    """
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("DROP TABLE IF EXISTS bench_units")
        await connection.execute(workload.TABLE)
        await connection.copy_records_to_table("bench_units", records=rows)
        await connection.execute("ANALYZE bench_units")
    finally:
        await connection.close()
