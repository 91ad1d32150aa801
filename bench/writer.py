"""A process that writes to a SQLite file as fast as possible: `python -m bench.writer KIND FILE SECONDS MAX`.

KIND is `hub`, or the number of units per commit; MAX is the maximum number of units. The program prints `ready`, waits
for a line, writes, and prints the number of units completed in time.
"""

import asyncio
import sys
import time
from pathlib import Path

from bench import workload
from bench.harness import drive
from hubgate.server.storage.engines import open_database


def main() -> None:
    kind, path, seconds, max_operations = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    if kind == "hub":
        asyncio.run(_hub(path, seconds, max_operations))
    else:
        _plain(path, seconds, max_operations, units=int(kind))


def _await_start() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


async def _hub(path: Path, seconds: float, max_operations: int) -> None:
    db = await open_database(f"sqlite:///{path}")
    _await_start()
    rate = await drive(lambda: db.write(workload.unit()), workload.CALLERS, seconds, max_operations)
    await db.close()
    print(round(rate * seconds))


def _plain(path: Path, seconds: float, max_operations: int, units: int) -> None:
    """Write transactions of `units` units, relying only on SQLite's busy timeout for locking conflicts."""
    connection = workload.plain_sqlite(path, busy_timeout=30.0)
    _await_start()
    deadline, done = time.monotonic() + seconds, 0
    while done < max_operations:
        connection.execute("BEGIN IMMEDIATE")
        for _ in range(units):
            workload.run_on_sqlite(connection)
        connection.execute("COMMIT")
        if time.monotonic() > deadline:
            break
        done += units
    connection.close()
    print(done)


if __name__ == "__main__":
    main()
