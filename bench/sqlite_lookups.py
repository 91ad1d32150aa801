"""Look-ups by key per second on SQLite, in a table of a hundred thousand rows."""

import asyncio
from functools import partial

from bench import workload
from bench.harness import Operation, Table, drive, run_interleaved, table, warm_up
from bench.workspace import Workspace
from hubgate.server.storage.engines import open_database

TURN = 0.6
RAW = "raw sqlite3 execute + fetchone"


def measure(workspace: Workspace) -> list[Table]:
    path = workspace.subfolder("sqlite-lookups") / "hub.db"
    rows, keys = workload.stored_rows()
    connection = workload.create_sqlite(path)
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO bench_units (id, owner, hits) VALUES (?, ?, ?)", rows)
    connection.execute("COMMIT")
    with asyncio.Runner() as runner:
        db = runner.run(open_database(f"sqlite:///{path}"))

        async def raw() -> object:
            return connection.execute(workload.READ, next(keys)).fetchone()

        def turn(operation: Operation) -> float:
            return runner.run(drive(operation, 1, workspace.budget.seconds(TURN), workspace.budget.max_operations))

        contestants = {
            RAW: partial(turn, raw),
            "db.one": partial(turn, lambda: db.one(workload.READ, next(keys))),
            "db.read of one look-up": partial(turn, lambda: db.read(lambda tx: tx.one(workload.READ, next(keys)))),
        }
        samples = run_interleaved(warm_up(contestants), workspace.budget.rounds)
        runner.run(db.close())
    connection.close()
    return [table("SQLite look-ups by key", "look-ups/s", RAW, samples)]
