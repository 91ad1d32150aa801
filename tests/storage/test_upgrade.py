"""Creating and upgrading a database, and rejecting one that is not the hub's."""

import asyncio
import json
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import BigInteger, Column, LargeBinary, create_engine
from sqlalchemy.ext.asyncio import create_async_engine
from tests.bed.engines import Engine, opened_database

from hubgate.server.errors import StartupError
from hubgate.server.storage import upgrade
from hubgate.server.storage.schema import metadata
from hubgate.server.storage.sqltext import Value
from hubgate.server.storage.upgrade import REVISIONS, SchemaState, ensure_current_schema, migrate, schema_state


def is_declared(object_: object, name: str | None, *_: object) -> bool:
    """Not the text index, which SQLAlchemy cannot describe. `structure` compares it."""
    return name is None or not name.startswith(("search_words", "ix_search_documents_words"))


def differences(connection) -> list[object]:
    opts = {"compare_type": True, "compare_server_default": True, "include_object": is_declared}
    context = MigrationContext.configure(connection, opts=opts)
    return compare_metadata(context, metadata)


async def differences_at(url: str) -> list[object]:
    if url.startswith("sqlite"):
        engine = create_engine(url)
        with engine.connect() as connection:
            found = differences(connection)
        engine.dispose()
        return found
    import asyncpg

    pg = create_async_engine("postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(url))
    async with pg.connect() as connection:
        found = await connection.run_sync(differences)
    await pg.dispose()
    return found


async def structure(url: str) -> list[tuple[object, ...]]:
    """The tables as the engine itself describes them."""
    async with opened_database(url) as db:
        if url.startswith("sqlite"):
            sql = "SELECT type, name, tbl_name FROM sqlite_master WHERE tbl_name <> 'alembic_version' ORDER BY name"
            rows = list(await db.read_long(lambda tx: tx.all(sql)))
            for table in metadata.tables:
                rows += await db.read_long(lambda tx, table=table: tx.all(f"PRAGMA table_xinfo({table})"))
        else:
            sql = """
                SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns
                WHERE table_schema = 'public' AND table_name <> 'alembic_version' ORDER BY 1, ordinal_position
            """
            rows = list(await db.read_long(lambda tx: tx.all(sql)))
            indexes = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
            rows += await db.read_long(lambda tx: tx.all(f"{indexes} ORDER BY 1"))
        return [tuple(row) for row in rows]


async def test_migrated_schema_equals_the_declared_one(storage: Engine) -> None:
    """In SQLAlchemy's metadata and in the engine's own description."""
    migrated, declared = storage.empty_url(), storage.empty_url()
    async with opened_database(migrated) as db:
        assert await schema_state(db) is SchemaState.EMPTY
        assert await migrate(db, migrated)
        assert await schema_state(db) is SchemaState.CURRENT
        assert not await migrate(db, migrated)
    assert await differences_at(migrated) == []
    await create_declared(declared)
    assert await structure(migrated) == await structure(declared)


async def create_declared(url: str) -> None:
    if url.startswith("sqlite"):
        engine = create_engine(url)
        metadata.create_all(engine)
        engine.dispose()
        return
    import asyncpg

    pg = create_async_engine("postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(url))
    async with pg.begin() as connection:
        await connection.run_sync(metadata.create_all)
    await pg.dispose()


def test_revisions_are_consecutive() -> None:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(upgrade.MIGRATIONS))
    script = ScriptDirectory.from_config(config)
    assert script.get_heads() == [REVISIONS[-1]]
    assert sorted(revision.revision for revision in script.walk_revisions()) == REVISIONS


async def build_previous(url: str, revision: str = REVISIONS[-1]) -> None:
    """A database as the version before that revision left it, with a row in every table."""
    async with opened_database(url) as db:
        await migrate(db, url, REVISIONS[REVISIONS.index(revision) - 1])
        there = await db.tables() - {upgrade.VERSION_TABLE}
        # Referenced tables first.
        for table in [table for table in metadata.sorted_tables if table.name in there]:
            # A column that a migration adds to a table has a default or may be null.
            known = [column for column in table.columns if column.server_default is None and not column.nullable]
            columns = {column.name: sample(column) for column in known}
            names, values = ", ".join(columns), ", ".join(f":{name}" for name in columns)
            # A migration may have added the row already.
            sql = f"INSERT INTO {table.name} ({names}) VALUES ({values}) ON CONFLICT DO NOTHING"
            await db.write(lambda tx, sql=sql, columns=columns: tx.exec(sql, columns))


def sample(column: Column[Any]) -> Value:
    return {BigInteger: 1, LargeBinary: b"x"}.get(type(column.type), "x")  # type: ignore[return-value]


async def test_consents_are_remembered_for_the_hub(storage: Engine) -> None:
    url = storage.empty_url()
    await build_previous(url, "0014")
    async with opened_database(url) as db:
        await migrate(db, url)
        rows = await db.read(lambda tx: tx.all("SELECT * FROM consent_approvals"))
    assert [tuple(row) for row in rows] == [("x", "", "", "", "x", 1)]


async def test_organizations_are_granted_with_the_scopes_of_their_consent(storage: Engine) -> None:
    url = storage.empty_url()
    await build_previous(url, "0012")
    async with opened_database(url) as db:
        before = "openid read-repos webhooks profile"
        await db.write(lambda tx: tx.exec("UPDATE consents SET scopes = :scopes", {"scopes": before}))
        await db.write(lambda tx: tx.exec("UPDATE memberships SET joined_at = 7"))
        await migrate(db, url)
        rows = await db.read(lambda tx: tx.all("SELECT scopes, joined_at FROM consent_organizations"))
    assert [tuple(row) for row in rows] == [("read-repos webhooks", 7)]


async def test_grants_name_their_servers_and_what_they_began_under(storage: Engine) -> None:
    url = storage.empty_url()
    await build_previous(url, "0019")
    changes = (
        "UPDATE consent_approvals SET resources = 'https://b.example/ https://a.example/'",
        "UPDATE refresh_tokens SET resources = 'https://a.example/ urn:c', consent_id = 'x'",
        "UPDATE memberships SET joined_at = 7",
        "UPDATE organizations SET plan_since = 5",
        "UPDATE apps SET org_id = 'x', exchange_since = 6",
        """
        UPDATE webhooks SET org_id = 'x', client_id = 'x', granted_by = 'x', grant_kind = 'exchange', granted_at = 7
        """,
    )
    async with opened_database(url) as db:
        for sql in changes:
            await db.write(lambda tx, sql=sql: tx.exec(sql))
        await migrate(db, url)
        consent = await db.one("SELECT other_resources FROM consents", {})
        organization = await db.one("SELECT last_joined_at FROM organizations", {})
        webhook = await db.one("SELECT granted_under, taken_over FROM webhooks", {})
    assert consent is not None
    assert organization is not None
    assert webhook is not None
    assert consent["other_resources"] == "https://a.example/ https://b.example/ urn:c"
    assert organization["last_joined_at"] == 7
    assert tuple(webhook) == ("7 5 6", 0)


async def test_consents_for_other_servers_keep_only_scopes_that_identify_the_user(storage: Engine) -> None:
    url = storage.empty_url()
    await build_previous(url, "0032")
    sql = "UPDATE consents SET other_scopes = :scopes, other_resources = 'https://a.example/ urn:c'"
    async with opened_database(url) as db:
        await db.write(lambda tx: tx.exec(sql, {"scopes": "manage-repos profile openid"}))
        await migrate(db, url)
        consent = await db.one("SELECT resource_scopes FROM consents", {})
    assert consent is not None
    assert json.loads(consent["resource_scopes"]) == {"https://a.example/": "profile openid", "urn:c": "profile openid"}


async def test_older_schema_is_upgraded_on_sqlite_and_reported_on_postgres(storage: Engine) -> None:
    url = storage.empty_url()
    await build_previous(url)
    async with opened_database(url) as db:
        assert await schema_state(db) is SchemaState.OLDER
        if storage.name == "sqlite":
            await ensure_current_schema(db, url)
        else:
            with pytest.raises(StartupError, match="hubgate migrate"):
                await ensure_current_schema(db, url)
            assert await schema_state(db) is SchemaState.OLDER
            await migrate(db, url)
        assert await schema_state(db) is SchemaState.CURRENT
        assert await db.one("SELECT kid FROM signing_keys") is not None, "what was there survived the journey"
    assert await differences_at(url) == []


async def test_newer_schema_is_rejected(storage: Engine) -> None:
    url = storage.fresh_url()
    async with opened_database(url) as db:
        await db.write(lambda tx: tx.exec("UPDATE alembic_version SET version_num = '9999'"))
        for attempt in (ensure_current_schema, migrate):
            with pytest.raises(StartupError, match="newer version"):
                await attempt(db, url)
        assert await schema_state(db) is SchemaState.NEWER


async def test_foreign_database_is_not_touched(storage: Engine) -> None:
    url = storage.empty_url()
    async with opened_database(url) as db:
        await db.write(lambda tx: tx.exec("CREATE TABLE theirs (id bigint)"))
        with pytest.raises(StartupError, match="tables of another program"):
            await ensure_current_schema(db, url)
        assert await db.tables() == {"theirs"}


async def test_concurrent_first_starts_create_one_schema(storage: Engine) -> None:
    url = storage.empty_url()

    async def first_start() -> None:
        async with opened_database(url) as db:
            await ensure_current_schema(db, url)

    await asyncio.gather(*(asyncio.to_thread(asyncio.run, first_start()) for _ in range(4)))
    async with opened_database(url) as db:
        assert await schema_state(db) is SchemaState.CURRENT


async def test_failed_upgrade_leaves_the_old_schema_intact(storage: Engine) -> None:
    url = storage.empty_url()
    async with opened_database(url) as db:
        await migrate(db, url, REVISIONS[0])
        # A table of a late migration already exists, so the migrations before it must be undone.
        there = await db.tables()
        in_the_way = next(table.name for table in reversed(metadata.sorted_tables) if table.name not in there)
        await db.write(lambda tx: tx.exec(f"CREATE TABLE {in_the_way} (other text)"))
        before = await db.tables()
        with pytest.raises(StartupError, match="could not be migrated"):
            await migrate(db, url)
        assert await schema_state(db) is SchemaState.OLDER
        assert await db.tables() == before
