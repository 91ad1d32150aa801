"""Parses a database URL, describes the capabilities of its engine, and opens the database.

The rest of the hub asks for a capability of `Engine`, never for an engine by name, so that another engine needs changes
only in this package. PostgreSQL's driver is imported only if it is used.
"""

import os
import sqlite3
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from hubgate.server.errors import StartupError
from hubgate.server.storage.database import Database
from hubgate.server.storage.sqlite import SqliteDatabase

_SQLITE = "sqlite:///"


class Engine(Struct, frozen=True):
    """The capabilities of a database's engine."""

    name: str
    # The file that contains the database; None for a database server.
    file: Path | None
    # Only processes on this machine use the database. The hub then migrates an older schema when it starts, and the
    # server secret may be a file in the data folder.
    is_local: bool


def engine_of(url: str) -> Engine:
    if url.startswith(_SQLITE):
        return Engine("SQLite", Path(url.removeprefix(_SQLITE)), is_local=True)
    return Engine("PostgreSQL", None, is_local=False)


def default_url(data_dir: Path) -> str:
    return f"{_SQLITE}{data_dir}/hubgate.db"


def parse_url(value: str) -> str:
    if not value:
        return ""
    if value.startswith(("postgresql://", "postgres://")):
        parts = urlsplit(value)
        try:
            _ = parts.port
        except ValueError:
            raise ValueError("the port of a database address must be a number up to 65535") from None
        return value
    if value.startswith(_SQLITE) and len(value) > len(_SQLITE) and ":memory:" not in value:
        return value
    raise ValueError("expected sqlite:///path/to/file.db or postgresql://user:password@host/database")


async def open_database(url: str, *, by_index: bool = False) -> Database:
    """Open an existing database. `by_index`: all statements read and write by key, as in the background process."""
    file = engine_of(url).file
    if file is None:
        return _open_postgres(url, by_index=by_index)
    if not file.exists():
        raise StartupError(f"There is no database at {file}. Start the hub once, with: hubgate serve")
    return _open_sqlite(file)


async def create_database(url: str) -> Database:
    """Open the database, after creating the SQLite file if it does not exist yet."""
    file = engine_of(url).file
    if file is not None:
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise StartupError(f"Cannot create the database file {file}: {error.strerror}.") from error
    return await open_database(url)


def _open_sqlite(path: Path) -> Database:
    try:
        return SqliteDatabase(path)
    except (OSError, sqlite3.Error) as error:
        raise StartupError(f"Cannot open the database file {path}: {error}") from error


def _open_postgres(url: str, *, by_index: bool) -> Database:
    try:
        from hubgate.server.storage.postgres import PostgresDatabase
    except ModuleNotFoundError as error:
        raise StartupError('PostgreSQL needs its driver. Run: pip install "hubgate[server,postgres]"') from error
    return PostgresDatabase(url, by_index=by_index)
