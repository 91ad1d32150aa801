"""A statement for many rows: one round trip on PostgreSQL, and the same result on both engines."""

import pytest
from tests.bed.engines import Engine, opened_database

from hubgate.server.storage.database import ConstraintViolated, Tx
from hubgate.server.storage.sqltext import Params, RowStatement, Statement, as_single_statement

ADD = RowStatement(
    "INSERT INTO leases (name, holder, expires_at) SELECT :name, :holder, :at /*pg FROM batch */ RETURNING name",
    {"name": "text", "holder": "text", "at": "bigint"},
)
SET = RowStatement(
    """
    UPDATE leases SET holder = :holder, expires_at = expires_at + CAST(:more AS bigint) /*pg FROM batch */
    WHERE name = :name AND expires_at < :limit RETURNING name
    """,
    {"name": "text", "holder": "text"},
)
# The limit applies to every row separately.
BEFORE = RowStatement(
    """
    SELECT CAST(:name AS text) AS asked, l.name FROM leases l WHERE l.name < :name ORDER BY l.name DESC LIMIT :limit
    /*pg FOR NO KEY UPDATE */
    """,
    {"name": "text"},
)


def some(*names: str) -> list[Params]:
    return [{"name": name, "holder": f"of {name}", "at": place} for place, name in enumerate(names)]


async def test_rows_are_added_changed_and_found(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:
        added = await db.write(lambda tx: tx.each(ADD, some("a", "b", "c", "d")))
        assert [row["name"] for row in added] == ["a", "b", "c", "d"]

        async def change(tx: Tx) -> list[str]:
            rows: list[Params] = [{"name": name, "holder": name * 2} for name in ("d", "b", "nobody", "a")]
            return sorted(row["name"] for row in await tx.each(SET, rows, {"more": 10, "limit": 3}))

        assert await db.write(change) == ["a", "b"]
        held = await db.read_long(lambda tx: tx.all("SELECT holder, expires_at FROM leases ORDER BY name"))
        assert [tuple(row) for row in held] == [("aa", 10), ("bb", 11), ("of c", 2), ("of d", 3)]

        asked: list[Params] = [{"name": "d"}, {"name": "a"}, {"name": "c"}]
        found = await db.write(lambda tx: tx.each(BEFORE, asked, {"limit": 2}))
        assert [tuple(row) for row in found] == [("d", "c"), ("d", "b"), ("c", "b"), ("c", "a")]


async def test_no_rows_run_no_statement(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:
        assert list(await db.write(lambda tx: tx.each(ADD, []))) == []


async def test_one_invalid_row_rolls_the_unit_back(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:
        with pytest.raises(ConstraintViolated):
            await db.write(lambda tx: tx.each(ADD, some("a", "b", "a")))
        assert await db.one("SELECT 1 FROM leases WHERE name IN ('a', 'b')") is None


def test_postgres_gets_one_statement_with_arrays() -> None:
    text, names = as_single_statement(SET)
    assert text.startswith(
        "WITH batch AS (SELECT * FROM unnest($1::text[], $2::text[]) AS given(each_name, each_holder))"
    )
    assert "FROM batch WHERE name = batch.each_name" in " ".join(text.split())
    assert names == ("more", "limit")


async def test_statements_are_executed_together(storage: Engine) -> None:
    """With parameters of the same name, which differ."""
    lease = "INSERT INTO leases (name, holder, expires_at) VALUES (:name, :name, :at)"
    bucket = "INSERT INTO rate_limits (bucket, hits, resets_at) VALUES (:bucket, :at, :at)"
    async with opened_database(storage.fresh_url()) as db:

        async def add(tx: Tx, name: str, bucket_key: bytes) -> None:
            given: list[Statement] = [
                (lease, {"name": name, "at": 1}),
                (bucket, {"bucket": bucket_key, "at": 2}),
                ("UPDATE leases SET expires_at = :at WHERE name = :name", {"name": "first", "at": 7}),
            ]
            await tx.exec_together(given)
            await tx.exec_together([(lease, {"name": f"{name} alone", "at": 3})])

        await db.write(lambda tx: tx.exec(lease, {"name": "first", "at": 0}))
        await db.write(lambda tx: add(tx, "a", b"1"))
        with pytest.raises(ConstraintViolated):
            await db.write(lambda tx: add(tx, "b", b"1"))
        found = await db.read_long(lambda tx: tx.all("SELECT name, expires_at FROM leases ORDER BY name"))
        assert [tuple(row) for row in found] == [("a", 1), ("a alone", 3), ("first", 7)]
        assert tuple(await db.one("SELECT hits, resets_at FROM rate_limits") or ()) == (2, 2)
