"""Units of work per second on SQLite: grouped by the hub, committed individually, and all in a single transaction."""

import asyncio
import sqlite3
from functools import partial

from bench import workload
from bench.harness import Table, drive, run_interleaved, table, warm_up
from bench.workspace import Workspace
from hubgate.server.storage.database import Database
from hubgate.server.storage.engines import open_database

TURN = 1.0
ONE_BY_ONE = "a commit per unit, raw sqlite3"


def measure(workspace: Workspace) -> list[Table]:
    folder, seconds, max_operations = (
        workspace.subfolder("sqlite-writes"),
        workspace.budget.seconds(TURN),
        workspace.budget.max_operations,
    )
    grouped, single, ideal = (workload.create_sqlite(folder / f"{name}.db") for name in ("hub", "single", "ideal"))
    with asyncio.Runner() as runner:
        db = runner.run(open_database(f"sqlite:///{folder}/hub.db"))
        contestants = {
            ONE_BY_ONE: lambda: runner.run(
                drive(partial(commit_each, single), workload.CALLERS, seconds, max_operations)
            ),
            f"db.write, {workload.CALLERS} callers": lambda: runner.run(
                _hub(db, workload.CALLERS, seconds, max_operations)
            ),
            "db.write, 1 caller": lambda: runner.run(_hub(db, 1, seconds, max_operations)),
            "one transaction for all (upper bound)": lambda: runner.run(
                _one_transaction(ideal, seconds, max_operations)
            ),
        }
        samples = run_interleaved(warm_up(contestants), workspace.budget.rounds)
        runner.run(db.close())
    for connection in (grouped, single, ideal):
        connection.close()
    return [table("SQLite writes: units of 3 statements", "units/s", ONE_BY_ONE, samples)]


async def commit_each(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    workload.run_on_sqlite(connection)
    connection.execute("COMMIT")


async def _hub(db: Database, callers: int, seconds: float, max_operations: int) -> float:
    return await drive(lambda: db.write(workload.unit()), callers, seconds, max_operations)


async def _one_transaction(connection: sqlite3.Connection, seconds: float, max_operations: int) -> float:
    async def run() -> None:
        workload.run_on_sqlite(connection)

    connection.execute("BEGIN IMMEDIATE")
    rate = await drive(run, workload.CALLERS, seconds, max_operations)
    connection.execute("COMMIT")
    return rate
