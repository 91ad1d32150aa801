"""The unit of work that every contestant runs, with the same statements: insert a row, update it, read it."""

import itertools
import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from hubgate.server.storage.database import Batch, Row, Tx, Unit

CALLERS = 64
# Rows stored in a table before measuring.
STORED_ROWS = 100_000

TABLE = "CREATE TABLE bench_units (id text PRIMARY KEY, owner text NOT NULL, hits bigint NOT NULL)"
SQLITE_TABLE = f"{TABLE} WITHOUT ROWID"
INSERT = "INSERT INTO bench_units (id, owner, hits) VALUES (:id, :owner, 0)"
UPDATE = "UPDATE bench_units SET hits = hits + 1 WHERE id = :id"
READ = "SELECT id, owner, hits FROM bench_units WHERE id = :id"

# The result of the unit in a single statement.
ADD = Batch(
    name="bench.add",
    key="id",
    columns={"id": "text", "owner": "text"},
    sql="INSERT INTO bench_units (id, owner, hits) SELECT id, owner, 1 FROM batch RETURNING id, owner, hits",
)

# Rows of a kilobyte each, together more than the thousand pages after which SQLite checkpoints.
WAL_ROWS = 6_000

_numbers = itertools.count()


def new_row() -> dict[str, str]:
    """A row with a key like the hub's token keys: a slowly growing prefix, then random."""
    return {"id": f"{next(_numbers) >> 12:08x}{secrets.token_hex(12)}", "owner": "someone"}


def unit() -> Unit[Row | None]:
    row = new_row()

    async def run(tx: Tx) -> Row | None:
        await tx.exec(INSERT, row)
        await tx.exec(UPDATE, row)
        return await tx.one(READ, row)

    return run


def run_on_sqlite(connection: sqlite3.Connection) -> None:
    row = new_row()
    connection.execute(INSERT, row)
    connection.execute(UPDATE, row)
    connection.execute(READ, row).fetchone()


def plain_sqlite(path: Path, busy_timeout: float = 0.0) -> sqlite3.Connection:
    """A plain sqlite3 connection, with the same durability as the hub's."""
    connection = sqlite3.connect(path, timeout=busy_timeout, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    return connection


def create_sqlite(path: Path) -> sqlite3.Connection:
    """Create the table and grow the WAL to its usual size: on a growing file every sync takes several times as long.

    The caller must not close the connection while the file is used: closing the last connection deletes the WAL.
    """
    connection = plain_sqlite(path)
    connection.execute(SQLITE_TABLE)
    connection.execute("BEGIN")
    connection.executemany(INSERT, ({**new_row(), "owner": "x" * 1000} for _ in range(WAL_ROWS)))
    connection.execute("COMMIT")
    return connection


def stored_rows() -> tuple[list[tuple[str, str, int]], Iterator[dict[str, str]]]:
    """Rows for a table, and an endless iterator over their keys in an order unrelated to the table's."""
    rows = [(new_row()["id"], "someone", number) for number in range(STORED_ROWS)]
    shuffled = sorted(rows, key=lambda row: row[0][8:])
    return rows, itertools.cycle([{"id": row[0]} for row in shuffled])
