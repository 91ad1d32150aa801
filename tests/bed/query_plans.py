"""How an engine executes statements, with tables that have rows and statistics."""

from collections.abc import Awaitable, Callable, Mapping

import asyncpg
from tests.bed.delivery_statements import Statement, for_postgres, for_sqlite
from tests.bed.engines import Engine, opened_database

from hubgate.server.storage.database import Database, Tx


async def plans_of(
    engine: Engine, fill: Callable[[Database], Awaitable[None]], statements: Mapping[str, Statement]
) -> dict[str, str]:
    """The plan of every statement in a database that `fill` has filled."""
    url = engine.fresh_url()
    async with opened_database(url) as db:
        await fill(db)
        if engine.name == "sqlite":
            return {where: await _sqlite_plan(db, *for_sqlite(each)) for where, each in statements.items()}
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("ANALYZE")
        # As after some executions: plans that do not depend on the values.
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        return {where: await _postgres_plan(connection, for_postgres(each)) for where, each in statements.items()}
    finally:
        await connection.close()


async def _postgres_plan(connection: asyncpg.Connection, sql: str) -> str:
    count = len((await connection.prepare(sql)).get_parameters())
    await connection.execute(f"PREPARE explained AS {sql}")
    values = f"({', '.join(['NULL'] * count)})" if count else ""
    rows = await connection.fetch(f"EXPLAIN EXECUTE explained{values}")
    await connection.execute("DEALLOCATE explained")
    return "\n".join(row[0] for row in rows)


async def _sqlite_plan(db: Database, sql: str, names: list[str]) -> str:
    async def unit(tx: Tx) -> str:
        rows = await tx.all(f"EXPLAIN QUERY PLAN {sql}", dict.fromkeys(names, 0))
        return "\n".join(str(row[3]) for row in rows)

    return await db.read_long(unit)
