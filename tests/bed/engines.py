"""Fresh, migrated databases on either engine, copied from a template that is migrated once."""

import contextlib
import secrets
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
from tests.bed import testbuild
from tests.bed.blocking import run_blocking
from tests.bed.clock import FrozenClock

from hubgate.server.oauth.keys.ring import KeyRing
from hubgate.server.secret import ServerSecret
from hubgate.server.settings import Settings, load
from hubgate.server.storage.database import Database
from hubgate.server.storage.engines import create_database
from hubgate.server.storage.upgrade import migrate

SECRET_KEY = "a test secret of more than thirty-two characters"
TEMPLATE = "hub_template"
# A copy of the template for permanent connections: PostgreSQL cannot copy a template that has connections.
STATEMENTS = "hub_statements"


def settings_for(url: str, folder: Path, **given: str) -> Settings:
    flags = {"database_url": url, "data_dir": str(folder), "secret_key": SECRET_KEY, "port": "0", **given}
    return load(flags, environment={}, config=None)


async def set_up_database(url: str, folder: Path) -> None:
    db = await create_database(url)
    try:
        await migrate(db, url)
        await KeyRing(db, ServerSecret(SECRET_KEY), FrozenClock()).ensure_signing_key()
    finally:
        await db.close()


@dataclass(frozen=True)
class SqliteEngine:
    """SQLite databases, copied from the unused database `template`."""

    template: Path
    folder: Path
    name: str = "sqlite"

    def empty_url(self) -> str:
        return f"sqlite:///{self.folder}/{secrets.token_hex(4)}.db"

    def fresh_url(self) -> str:
        url = self.empty_url()
        shutil.copy(self.template, url.removeprefix("sqlite:///"))
        return url


@dataclass(frozen=True)
class PostgresEngine:
    """Databases in a PostgreSQL cluster. Those in `unused` are dropped when the next database is created."""

    cluster_url: str
    unused: list[str] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    name: str = "postgres"

    def empty_url(self) -> str:
        return self._create("")

    def fresh_url(self) -> str:
        # FILE_COPY is faster than the default strategy, which writes each page to the WAL.
        return self._create(f"TEMPLATE {TEMPLATE} STRATEGY FILE_COPY")

    def _create(self, options: str) -> str:
        name = f"t_{secrets.token_hex(6)}"
        drops = [f"DROP DATABASE {self.unused.pop()} WITH (FORCE)" for _ in range(len(self.unused))]
        run_blocking(run_sql(self.cluster_url, *drops, f"CREATE DATABASE {name} {options}"))
        self.created.append(name)
        return self.cluster_url.replace("/postgres?", f"/{name}?")


Engine = SqliteEngine | PostgresEngine


async def run_sql(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for sql in statements:
            await connection.execute(sql)
    finally:
        await connection.close()


def create_sqlite_template(folder: Path) -> Path:
    path = folder / "template.db"
    run_blocking(set_up_database(f"sqlite:///{path}", folder))
    return path


def create_postgres_template(cluster_url: str, folder: Path) -> None:
    run_blocking(run_sql(cluster_url, f"CREATE DATABASE {TEMPLATE}"))
    url = cluster_url.replace("/postgres?", f"/{TEMPLATE}?")
    run_blocking(set_up_database(url, folder))
    run_blocking(run_sql(cluster_url, f"CREATE DATABASE {STATEMENTS} TEMPLATE {TEMPLATE}"))
    run_blocking(run_sql(cluster_url.replace("/postgres?", f"/{STATEMENTS}?"), testbuild.TABLE))


@contextlib.asynccontextmanager
async def opened_database(url: str) -> AsyncIterator[Database]:
    db = await create_database(url)
    try:
        yield db
    finally:
        await db.close()
