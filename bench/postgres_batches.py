"""A frequent insert on PostgreSQL as a unit and as a batch, by number of callers."""

import asyncio
from functools import partial

from bench import asyncpg_raw, workload
from bench.harness import Operation, Table, drive, run_interleaved, table, warm_up
from bench.workspace import Workspace
from hubgate.server.storage.database import Row, Tx, Unit
from hubgate.server.storage.engines import open_database

TURN = 0.6
CALLER_COUNTS = (1, 16, 64, 256)
STATEMENT = "INSERT INTO bench_units (id, owner, hits) VALUES (:id, :owner, 1) RETURNING id, owner, hits"
UNIT = "db.write of one statement"


def measure(workspace: Workspace) -> list[Table]:
    url = workspace.postgres_url
    rows, _ = workload.stored_rows()
    with asyncio.Runner() as runner:
        runner.run(asyncpg_raw.fill_table(url, rows))
        db = runner.run(open_database(url))

        def turn(callers: int, operation: Operation) -> float:
            return runner.run(
                drive(operation, callers, workspace.budget.seconds(TURN), workspace.budget.max_operations)
            )

        tables = []
        for callers in CALLER_COUNTS:
            contestants = {
                UNIT: partial(turn, callers, lambda: db.write(_unit())),
                "db.batch": partial(turn, callers, lambda: db.batch(workload.ADD, workload.new_row())),
            }
            samples = run_interleaved(warm_up(contestants), workspace.budget.rounds)
            tables.append(table(f"PostgreSQL hot insert, callers: {callers}", "rows/s", UNIT, samples))
        runner.run(db.close())
    return tables


def _unit() -> Unit[Row | None]:
    row = workload.new_row()

    async def run(tx: Tx) -> Row | None:
        return await tx.one(STATEMENT, row)

    return run
