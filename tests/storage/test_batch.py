"""Frequent statements that many callers run concurrently."""

import asyncio

import pytest
from tests.bed.engines import Engine, opened_database

from hubgate.server.storage.database import Batch, ConstraintViolated, Database

ADD = Batch(
    name="test.add",
    key="name",
    columns={"name": "text", "holder": "text", "at": "bigint"},
    sql="INSERT INTO leases (name, holder, expires_at) SELECT name, holder, at FROM batch RETURNING name, expires_at",
)

COUNT = Batch(
    name="test.count",
    key="name",
    columns={"name": "text"},
    sql="""
    INSERT INTO leases (name, holder, expires_at) SELECT name, 'h', 1 FROM batch WHERE true
    ON CONFLICT (name) DO UPDATE SET expires_at = leases.expires_at + 1 RETURNING name, expires_at
    """,
)

# Adds a lease, and a counter for each lease that was added.
ADD_BOTH = Batch(
    name="test.add_both",
    key="name",
    columns={"name": "text", "bucket": "bytea", "at": "bigint"},
    sql="""
    INSERT INTO leases (name, holder, expires_at) SELECT name, 'h', at FROM batch WHERE at > 0
    ON CONFLICT DO NOTHING RETURNING name
    """,
    then="INSERT INTO rate_limits (bucket, hits, resets_at) SELECT bucket, 1, at FROM done",
)


async def test_each_caller_gets_its_own_row_back(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:
        rows = await asyncio.gather(*(db.batch(ADD, {"name": f"n{i}", "holder": "h", "at": i}) for i in range(1200)))
        assert [(row["name"], row["expires_at"]) for row in rows if row] == [(f"n{i}", i) for i in range(1200)]


async def test_row_that_violates_a_constraint_fails_alone(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:
        await db.batch(ADD, {"name": "taken", "holder": "h", "at": 0})
        names = ["a", "taken", "b", "c"]
        outcomes = await asyncio.gather(
            *(db.batch(ADD, {"name": name, "holder": "h", "at": 1}) for name in names), return_exceptions=True
        )
        assert [isinstance(outcome, ConstraintViolated) for outcome in outcomes] == [False, True, False, False]
        rows = await db.read_long(lambda tx: tx.all("SELECT name FROM leases ORDER BY name"))
        assert [row[0] for row in rows] == ["a", "b", "c", "taken"]


async def test_rows_with_one_key_run_one_after_another(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:
        rows = await asyncio.gather(*(db.batch(COUNT, {"name": "same"}) for _ in range(30)))
        assert sorted(row["expires_at"] for row in rows if row) == list(range(1, 31))


async def test_row_the_driver_cannot_send_fails_alone(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:
        rows = [{"name": name, "holder": "h", "at": at} for name, at in (("a", 1), ("b", 2**70), ("c", 3))]
        outcomes = await asyncio.gather(*(db.batch(ADD, row) for row in rows), return_exceptions=True)
        assert [isinstance(outcome, Exception) for outcome in outcomes] == [False, True, False]


async def test_row_without_its_key_does_not_block_the_rest(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:
        with pytest.raises(Exception, match="name"):
            await db.batch(ADD, {"holder": "h", "at": 1})
        assert await asyncio.wait_for(db.batch(ADD, {"name": "a", "holder": "h", "at": 1}), 60) is not None


async def test_two_machines_that_touch_the_same_rows_do_not_deadlock(storage: Engine) -> None:
    url = storage.fresh_url()
    async with opened_database(url) as here, opened_database(url) as there:
        names = [f"n{i}" for i in range(60)]

        async def hammer(db: Database, order: list[str]) -> None:
            for _ in range(8):
                await asyncio.gather(*(db.batch(COUNT, {"name": name}) for name in order))

        await asyncio.gather(hammer(here, names), hammer(there, names[::-1]))
        rows = await here.read_long(lambda tx: tx.all("SELECT expires_at FROM leases"))
        assert [row[0] for row in rows] == [16] * 60
        if storage.name == "postgres":
            sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
            row = await here.one(sql)
            assert row is not None
            assert row[0] == 0


async def counters(db: Database) -> list[bytes]:
    return [bytes(row[0]) for row in await db.read_long(lambda tx: tx.all("SELECT bucket FROM rate_limits ORDER BY 1"))]


async def test_second_statement_runs_for_the_rows_that_won(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:
        given = [("a", b"1", 1), ("b", b"2", 0), ("c", b"3", 5)]
        rows = [{"name": name, "bucket": bucket, "at": at} for name, bucket, at in given]
        added = await asyncio.gather(*(db.batch(ADD_BOTH, row) for row in rows))
        assert [row["name"] if row else None for row in added] == ["a", None, "c"]
        assert await counters(db) == [b"1", b"3"]
        assert await db.batch(ADD_BOTH, {"name": "a", "bucket": b"4", "at": 1}) is None
        assert await counters(db) == [b"1", b"3"]


async def test_failed_second_statement_undoes_the_first(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:
        await db.batch(ADD_BOTH, {"name": "a", "bucket": b"1", "at": 1})
        with pytest.raises(ConstraintViolated):
            await db.batch(ADD_BOTH, {"name": "b", "bucket": b"1", "at": 1})
        assert await db.one("SELECT 1 FROM leases WHERE name = 'b'") is None
