"""Units of work per second on PostgreSQL: the hub's transactions and batches against plain asyncpg."""

import asyncio
from functools import partial

import asyncpg

from bench import asyncpg_raw, workload
from bench.harness import Operation, Table, drive, run_interleaved, table, warm_up
from bench.workspace import Workspace
from hubgate.server.storage.engines import open_database

TURN = 1.0
POOL = f"asyncpg pool, {workload.CALLERS} callers"


def measure(workspace: Workspace) -> list[Table]:
    url = workspace.postgres_url
    rows, _ = workload.stored_rows()
    with asyncio.Runner() as runner:
        runner.run(asyncpg_raw.fill_table(url, rows))
        db = runner.run(open_database(url))
        connection = runner.run(asyncpg.connect(url))
        pool = runner.run(asyncpg_raw.create_pool(url))

        def turn(callers: int, operation: Operation) -> float:
            return runner.run(
                drive(operation, callers, workspace.budget.seconds(TURN), workspace.budget.max_operations)
            )

        many = workload.CALLERS
        contestants = {
            POOL: partial(turn, many, partial(asyncpg_raw.pooled_transaction, pool)),
            "asyncpg, one connection": partial(turn, 1, partial(asyncpg_raw.transaction, connection)),
            f"db.write, {many} callers": partial(turn, many, lambda: db.write(workload.unit())),
            f"db.batch, {many} callers": partial(turn, many, lambda: db.batch(workload.ADD, workload.new_row())),
        }
        samples = run_interleaved(warm_up(contestants), workspace.budget.rounds)
        runner.run(pool.close())
        runner.run(connection.close())
        runner.run(db.close())
    return [table("PostgreSQL writes: units of 3 statements", "units/s", POOL, samples)]
