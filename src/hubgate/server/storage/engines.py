"""Opens the engine for a database URL. PostgreSQL's driver is imported only if it is used."""

import os
import sqlite3
from pathlib import Path

from hubgate.server.errors import StartupError
from hubgate.server.setting_values import SQLITE
from hubgate.server.storage.database import Database
from hubgate.server.storage.sqlite import SqliteDatabase


def is_sqlite(url: str) -> bool:
    return url.startswith(SQLITE)


def sqlite_path(url: str) -> Path:
    return Path(url.removeprefix(SQLITE))


async def open_database(url: str) -> Database:
    if is_sqlite(url) and not sqlite_path(url).exists():
        raise StartupError(f"There is no database at {sqlite_path(url)}. Start the hub once, with: hubgate serve")
    return _open_sqlite(sqlite_path(url)) if is_sqlite(url) else _open_postgres(url)


async def create_database(url: str) -> Database:
    """Open the database, after creating the SQLite file if it does not exist yet."""
    if is_sqlite(url):
        path = sqlite_path(url)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise StartupError(f"Cannot create the database file {path}: {error.strerror}.") from error
    return await open_database(url)


def _open_sqlite(path: Path) -> Database:
    try:
        return SqliteDatabase(path)
    except (OSError, sqlite3.Error) as error:
        raise StartupError(f"Cannot open the database file {path}: {error}") from error


def _open_postgres(url: str) -> Database:
    try:
        from hubgate.server.storage.postgres import PostgresDatabase
    except ModuleNotFoundError as error:
        raise StartupError('PostgreSQL needs its driver. Run: pip install "hubgate[server,postgres]"') from error
    return PostgresDatabase(url)
