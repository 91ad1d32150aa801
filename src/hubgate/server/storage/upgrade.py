"""Migrates a database to this version's schema, or refuses to use it.

The schema is created in an empty database. An older schema is migrated at start-up on SQLite, under a lock; on
PostgreSQL the operator runs `hubgate migrate`, because other machines may still run the old version. A newer schema is
rejected. Every migration is one transaction, so an interrupted migration changes nothing.

Alembic is imported only if there is something to do: the import takes half a second.
"""

import asyncio
import fcntl
import os
import sqlite3
from enum import Enum
from pathlib import Path
from typing import Any

from hubgate.server.errors import StartupError
from hubgate.server.storage.database import Database
from hubgate.server.storage.engines import engine_of

MIGRATIONS = Path(__file__).with_name("migrations")
REVISIONS = sorted(file.name.partition("_")[0] for file in MIGRATIONS.glob("versions/[0-9]*_*.py"))
VERSION_TABLE = "alembic_version"
# An arbitrary constant. Concurrent migrations of a PostgreSQL database wait for this lock.
ADVISORY_LOCK = 0x68756267


class SchemaState(Enum):
    EMPTY = "empty"
    OLDER = "older"
    CURRENT = "current"
    NEWER = "newer"
    FOREIGN = "foreign"


async def schema_state(db: Database) -> SchemaState:
    tables = await db.tables()
    if VERSION_TABLE not in tables:
        return SchemaState.FOREIGN if tables else SchemaState.EMPTY
    row = await db.one("SELECT version_num FROM alembic_version")
    if row is None:
        return SchemaState.EMPTY
    if row[0] not in REVISIONS:
        return SchemaState.NEWER
    return SchemaState.CURRENT if row[0] == REVISIONS[-1] else SchemaState.OLDER


def schema_error(state: SchemaState) -> str:
    """The error message for a database in this state, which says how to fix the problem."""
    match state:
        case SchemaState.NEWER:
            return "The database was written by a newer version of hubgate. Install that version or a later one."
        case SchemaState.FOREIGN:
            return "The database contains tables of another program. Create a separate database for hubgate."
        case SchemaState.EMPTY:
            return "The database is empty. Start the hub once, or run: hubgate migrate"
        case _:
            return "The database has the schema of an older version. Run: hubgate migrate"


async def ensure_current_schema(db: Database, url: str) -> None:
    state = await schema_state(db)
    if state is SchemaState.OLDER and not engine_of(url).is_local:
        raise StartupError(schema_error(state))
    await _upgrade(state, url)


async def migrate(db: Database, url: str, revision: str = "head") -> bool:
    """Migrate the database, as `hubgate migrate` does. True if the schema was not current."""
    state = await schema_state(db)
    await _upgrade(state, url, revision)
    return state is not SchemaState.CURRENT


async def _upgrade(state: SchemaState, url: str, revision: str = "head") -> None:
    if state in (SchemaState.NEWER, SchemaState.FOREIGN):
        raise StartupError(schema_error(state))
    if state is SchemaState.CURRENT:
        return
    from sqlalchemy.exc import SQLAlchemyError

    try:
        file = engine_of(url).file
        if file is None:
            await _upgrade_postgres(url, revision)
        else:
            await asyncio.to_thread(_upgrade_sqlite, file, revision)
    except (SQLAlchemyError, OSError) as error:
        # The driver's message; SQLAlchemy's message also contains the statement and a link.
        reason = getattr(error, "orig", None) or error
        raise StartupError(f"The database could not be migrated and is unchanged: {reason}") from error


def _upgrade_sqlite(path: Path, revision: str) -> None:
    from sqlalchemy import create_engine, event

    lock = os.open(path.with_name(path.name + "-migrate"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # sqlite3 must not begin transactions itself: its transactions would not include DDL.
        engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(path, timeout=30, isolation_level=None))
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
        try:
            with engine.begin() as connection:
                _run_alembic(connection, revision)
        finally:
            engine.dispose()
    finally:
        os.close(lock)


async def _upgrade_postgres(url: str, revision: str) -> None:
    import asyncpg
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine("postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(url))
    try:
        async with engine.begin() as connection:
            await connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})")
            await connection.run_sync(_run_alembic, revision)
    finally:
        await engine.dispose()


def _run_alembic(connection: Any, revision: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
