"""No statement of fan-out and delivery reads all deliveries: each has an index, also with a large backlog."""

import asyncpg
import pytest
from tests.bed.delivery_statements import for_postgres, for_sqlite, statements
from tests.bed.engines import Engine, opened_database

from hubgate.server.storage.database import Database, Tx

# The partial index of each statement that reads deliveries into memory.
INDEXES = {
    "delivering.windows_store _REPLAYS": "ix_deliveries_replays",
    "delivering.windows_store _RETRIES": "ix_deliveries_retries",
    "delivering.windows_store _BLOCKERS": "ix_deliveries_retries",
    "delivering.windows_store _REPOS": "ix_deliveries_untried",
    "delivering.windows_store _LANE": "ix_deliveries_untried",
    "shards.work_store WITH_WORK[0]": "ix_deliveries_untried",
    "shards.work_store WITH_WORK[1]": "ix_deliveries_replays",
    "shards.work_store WITH_WORK[2]": "ix_deliveries_retries",
}
WEBHOOKS, DELIVERIES = 20, 8000

_NUMBERS = "WITH RECURSIVE numbers AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})"
_ADD_WEBHOOKS = f"""
    {_NUMBERS.format(count=WEBHOOKS)}
    INSERT INTO webhooks (id, domains, private_key, public_key, ordered, state, last_seq, quota_from, quota_used,
        failures, closed_until, created_at)
    SELECT 'w' || n, 'repo', :key, '', 0, 'enabled', 0, 0, 0, 0, 0, 0 FROM numbers
"""
# Most are over; some wait, as untried ones, as retries and as replays.
_ADD_DELIVERIES = f"""
    {_NUMBERS.format(count=DELIVERIES)}
    INSERT INTO deliveries (id, webhook_id, event_id, replay_of, seq, repo_id, repo_seq, repo_type, repo_name, scope,
        action, depth, is_test, state, reason, attempts, due_at, created_at)
    SELECT 'd' || n, 'w' || (1 + n % {WEBHOOKS}), 'e' || n, CASE WHEN n % 60 = 0 THEN 'd' ELSE '' END, n,
        'r' || (n % 7), n, 'model', 'a/b', 'repo', 'create', 0, 0,
        CASE WHEN n % 10 = 0 THEN 'pending' ELSE 'delivered' END,
        '', CASE WHEN n % 50 = 0 THEN 1 ELSE 0 END, n, n
    FROM numbers
"""


async def fill(db: Database) -> None:
    async def unit(tx: Tx) -> None:
        await tx.exec(_ADD_WEBHOOKS, {"key": b""})
        await tx.exec(_ADD_DELIVERIES)

    await db.write_long(unit)


async def plans(engine: Engine) -> dict[str, str]:
    """The plan of every statement."""
    url = engine.fresh_url()
    async with opened_database(url) as db:
        await fill(db)
        if engine.name == "sqlite":
            return {where: await _sqlite_plan(db, *for_sqlite(each)) for where, each in statements().items()}
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("ANALYZE")
        # As after some executions: plans that do not depend on the values.
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        return {where: await _postgres_plan(connection, for_postgres(each)) for where, each in statements().items()}
    finally:
        await connection.close()


async def _postgres_plan(connection: asyncpg.Connection, sql: str) -> str:  # type: ignore[type-arg]
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


@pytest.mark.parametrize("storage", ["sqlite", "postgres 16", "postgres 18"], indirect=True)
async def test_no_statement_reads_all_deliveries(storage: Engine) -> None:
    found = await plans(storage)
    assert len(found) > 30
    for where, plan in found.items():
        lines = [line.strip(" ->") for line in plan.splitlines()]
        whole = [
            line
            for line in lines
            if line.startswith(("Seq Scan on deliveries", "SCAN deliveries", "SCAN d")) and "USING" not in line
        ]
        assert not whole, f"{where}\n{plan}"


async def test_windows_are_read_with_their_partial_indexes(engine: Engine) -> None:
    """Two indexes have the same columns for different rows: with the wrong one a read would see all."""
    found = await plans(engine)
    for name, index in INDEXES.items():
        plan = found[name]
        used = {word for word in plan.replace("(", " ").split() if word.startswith(("ix_deliveries", "uq_deliveries"))}
        assert used == {index}, f"{name}\n{plan}"
