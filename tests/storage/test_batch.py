"""Hot statements that many callers run at once."""

import asyncio

from tests.bed.engines import Engine, opened

from hubgate.server.storage.database import Batch, ConstraintViolated

ADD = Batch(
    name="test.add",
    key="name",
    columns={"name": "text", "holder": "text", "at": "bigint"},
    sql="INSERT INTO leases (name, holder, expires_at) SELECT name, holder, at FROM batch RETURNING name, expires_at",
)


async def test_each_caller_gets_its_own_row_back(storage: Engine) -> None:
    async with opened(storage.fresh_url()) as db:
        rows = await asyncio.gather(*(db.batch(ADD, {"name": f"n{i}", "holder": "h", "at": i}) for i in range(1200)))
        assert [(row["name"], row["expires_at"]) for row in rows if row] == [(f"n{i}", i) for i in range(1200)]


async def test_one_row_that_breaks_a_rule_fails_alone(storage: Engine) -> None:
    async with opened(storage.fresh_url()) as db:
        await db.batch(ADD, {"name": "taken", "holder": "h", "at": 0})
        names = ["a", "taken", "b", "c"]
        outcomes = await asyncio.gather(
            *(db.batch(ADD, {"name": name, "holder": "h", "at": 1}) for name in names), return_exceptions=True
        )
        assert [isinstance(outcome, ConstraintViolated) for outcome in outcomes] == [False, True, False, False]
        rows = await db.read_long(lambda tx: tx.all("SELECT name FROM leases ORDER BY name"))
        assert [row[0] for row in rows] == ["a", "b", "c", "taken"]


async def test_rows_with_one_key_run_one_after_another(storage: Engine) -> None:
    count = Batch(
        name="test.count",
        key="name",
        columns={"name": "text"},
        sql="""
        INSERT INTO leases (name, holder, expires_at) SELECT name, 'h', 1 FROM batch WHERE true
        ON CONFLICT (name) DO UPDATE SET expires_at = leases.expires_at + 1 RETURNING name, expires_at
        """,
    )
    async with opened(storage.fresh_url()) as db:
        rows = await asyncio.gather(*(db.batch(count, {"name": "same"}) for _ in range(30)))
        assert sorted(row["expires_at"] for row in rows if row) == list(range(1, 31))
