"""Look-ups by key per second on SQLite, in a table of a hundred thousand rows."""

import asyncio
from functools import partial

from bench import workload
from bench.ground import Ground
from bench.harness import Operation, Table, drive, interleaved, table, warmed_up
from hubgate.server.storage.engines import open_database

TURN = 0.6
RAW = "raw sqlite3 execute + fetchone"


def measure(ground: Ground) -> list[Table]:
    path = ground.subfolder("sqlite-lookups") / "hub.db"
    rows, keys = workload.stored_rows()
    connection = workload.make_sqlite(path)
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO bench_units (id, holder, hits) VALUES (?, ?, ?)", rows)
    connection.execute("COMMIT")
    with asyncio.Runner() as runner:
        db = runner.run(open_database(f"sqlite:///{path}"))

        async def raw() -> object:
            return connection.execute(workload.READ, next(keys)).fetchone()

        def turn(operation: Operation) -> float:
            return runner.run(drive(operation, 1, ground.budget.seconds(TURN), ground.budget.most))

        contestants = {
            RAW: partial(turn, raw),
            "db.one": partial(turn, lambda: db.one(workload.READ, next(keys))),
            "db.read of one look-up": partial(turn, lambda: db.read(lambda tx: tx.one(workload.READ, next(keys)))),
        }
        samples = interleaved(warmed_up(contestants), ground.budget.rounds)
        runner.run(db.close())
    connection.close()
    return [table("SQLite look-ups by key", "look-ups/s", RAW, samples)]
