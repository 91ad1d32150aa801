"""A frequent insert on PostgreSQL as a unit and as a batch, by number of callers."""

import asyncio
from functools import partial

from bench import asyncpg_raw, workload
from bench.ground import Ground
from bench.harness import Operation, Table, drive, interleaved, table, warmed_up
from hubgate.server.storage.database import Row, Tx, Unit
from hubgate.server.storage.engines import open_database

TURN = 0.6
CROWDS = (1, 16, 64, 256)
STATEMENT = "INSERT INTO bench_units (id, holder, hits) VALUES (:id, :holder, 1) RETURNING id, holder, hits"
UNIT = "db.write of one statement"


def measure(ground: Ground) -> list[Table]:
    url = ground.postgres_url
    rows, _ = workload.stored_rows()
    with asyncio.Runner() as runner:
        runner.run(asyncpg_raw.fill_table(url, rows))
        db = runner.run(open_database(url))

        def turn(callers: int, operation: Operation) -> float:
            return runner.run(drive(operation, callers, ground.budget.seconds(TURN), ground.budget.most))

        tables = []
        for callers in CROWDS:
            contestants = {
                UNIT: partial(turn, callers, lambda: db.write(_unit())),
                "db.batch": partial(turn, callers, lambda: db.batch(workload.ADD, workload.new_row())),
            }
            samples = interleaved(warmed_up(contestants), ground.budget.rounds)
            tables.append(table(f"PostgreSQL hot insert, callers: {callers}", "rows/s", UNIT, samples))
        runner.run(db.close())
    return tables


def _unit() -> Unit[Row | None]:
    row = workload.new_row()

    async def run(tx: Tx) -> Row | None:
        return await tx.one(STATEMENT, row)

    return run
