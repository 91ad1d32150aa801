"""Tests that run on SQLite only still notice what PostgreSQL would reject (`tests/bed/statements.py`)."""

from pathlib import Path

import pytest
from tests.bed import statements
from tests.bed.engines import Engine, SqliteEngine, opened_database

from hubgate.server.storage.database import Tx, Unit
from hubgate.server.storage.sqltext import RowStatement

on_postgres = pytest.mark.parametrize("storage", ["postgres 16", "postgres 18"], indirect=True)
_NAMED = "SELECT id FROM users WHERE name = :name AND created_at > :since"
_EACH = RowStatement("SELECT id FROM users WHERE name = :name", {"name": "text"})


async def _refused(storage: Engine, template: Path, folder: Path, unit: Unit[object]) -> str:
    """The check's objections to a unit that succeeds on SQLite; empty if there are none."""
    try:
        with statements.check_on_postgres([storage.fresh_url()]):
            async with opened_database(SqliteEngine(template, folder).fresh_url()) as db:
                await db.read(unit)
    except AssertionError as error:
        return str(error)
    return ""


@on_postgres
async def test_statements_of_one_engine_are_rejected(storage: Engine, sqlite_template: Path, tmp_path: Path) -> None:
    async def function_of_sqlite(tx: Tx) -> object:
        return await tx.all("SELECT strftime('%s', 'now') AS now")

    async def grouping_of_sqlite(tx: Tx) -> object:
        return await tx.one("SELECT id, COUNT(*) AS many FROM users")

    for unit, named in ((function_of_sqlite, "strftime"), (grouping_of_sqlite, "GROUP BY")):
        assert named in await _refused(storage, sqlite_template, tmp_path, unit)


@on_postgres
async def test_values_of_the_wrong_type_are_rejected(storage: Engine, sqlite_template: Path, tmp_path: Path) -> None:
    async def text_for_a_number(tx: Tx) -> object:
        return await tx.one(_NAMED, {"name": "ada", "since": "yesterday"})

    async def number_for_a_text(tx: Tx) -> object:
        return await tx.each(_EACH, [{"name": "ada"}, {"name": 5}])

    async def as_it_should_be(tx: Tx) -> object:
        await tx.each(_EACH, [{"name": "ada"}])
        return await tx.one(_NAMED, {"name": "ada", "since": 5})

    assert ":since is int8" in await _refused(storage, sqlite_template, tmp_path, text_for_a_number)
    assert ":name is text" in await _refused(storage, sqlite_template, tmp_path, number_for_a_text)
    assert await _refused(storage, sqlite_template, tmp_path, as_it_should_be) == ""
