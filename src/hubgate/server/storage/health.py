"""Queries the state of the database engine: its integrity and its clock."""

from hubgate.server.clock import system_clock
from hubgate.server.storage.database import Database, Tx


async def integrity(db: Database, *, on_sqlite: bool) -> str | None:
    """The first damage found, or None. PostgreSQL checks its pages when it reads them."""
    if not on_sqlite:
        return None

    async def unit(tx: Tx) -> str | None:
        row = await tx.one("PRAGMA quick_check(1)")
        verdict = str(row[0]) if row else "no answer"
        return None if verdict == "ok" else verdict

    return await db.read_long(unit)


async def clock_of(db: Database, *, on_sqlite: bool) -> int:
    """The database's time. SQLite uses the clock of this machine."""
    if on_sqlite:
        return system_clock()
    row = await db.one("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)")
    return int(row[0]) if row else 0
