"""The conformance suite, first part: what a unit of work may rely on, on every engine."""

import asyncio

import pytest
from tests.bed.engines import Engine, opened_database

from hubgate.server.storage.database import ConstraintViolated, Database, ForeignAwait, Tx

ADD = "INSERT INTO leases (name, holder, expires_at) VALUES (:name, :holder, :at)"
GET = "SELECT holder, expires_at FROM leases WHERE name = :name"


def add(name: str, holder: str = "h", at: int = 0):
    return lambda tx: tx.exec(ADD, {"name": name, "holder": holder, "at": at})


async def holder_of(db: Database, name: str) -> str | None:
    row = await db.one(GET, {"name": name})
    return row["holder"] if row else None


async def test_values_are_read_back_unchanged(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:
        sql = "INSERT INTO rate_limits (bucket, hits, resets_at) VALUES (:bucket, :hits, :at) RETURNING bucket, hits"
        bucket = bytes(range(256))
        row = await db.write(lambda tx: tx.one(sql, {"bucket": bucket, "hits": 2**63 - 1, "at": -1}))
        assert row is not None
        assert (bytes(row["bucket"]), row[1]) == (bucket, 2**63 - 1)
        await db.write(add('it\'s: "quoted" \U0001f600', "--"))
        assert await holder_of(db, 'it\'s: "quoted" \U0001f600') == "--"


async def test_exec_returns_the_number_of_changed_rows(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:
        await db.write(lambda tx: tx.exec_many(ADD, [{"name": f"n{i}", "holder": "h", "at": i} for i in range(5)]))
        update = "UPDATE leases SET holder = :h WHERE expires_at > :at"
        changed = await db.write(lambda tx: tx.exec(update, {"h": "x", "at": 2}))
        assert changed == 2
        assert await db.write(lambda tx: tx.exec("DELETE FROM leases WHERE expires_at > :at", {"at": 9})) == 0


async def test_failing_unit_leaves_no_trace_and_does_not_affect_others(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:

        async def half_way(tx: Tx) -> None:
            await add("half")(tx)
            raise LookupError("refused")

        outcomes = await asyncio.gather(
            *(db.write(half_way if i % 3 == 0 else add(f"n{i}")) for i in range(60)), return_exceptions=True
        )
        assert [type(o) is LookupError for o in outcomes] == [i % 3 == 0 for i in range(60)]
        assert await holder_of(db, "half") is None
        names = await db.read_long(lambda tx: tx.all("SELECT name FROM leases"))
        assert {row[0] for row in names} == {f"n{i}" for i in range(60) if i % 3}


async def test_constraint_violation_is_one_error_on_every_engine(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:
        await db.write(add("taken"))
        names = ["a", "taken", "b"]
        outcomes = await asyncio.gather(*(db.write(add(name)) for name in names), return_exceptions=True)
        assert [type(o) for o in outcomes] == [int, ConstraintViolated, int]


async def test_swallowing_a_statement_error_does_not_save_the_unit(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:
        await db.write(add("taken"))

        async def stubborn(tx: Tx) -> str:
            await add("before")(tx)
            try:
                await add("taken")(tx)
            except ConstraintViolated:
                return "carried on"
            return "no error"

        with pytest.raises(ConstraintViolated):
            await db.write(stubborn)
        assert await holder_of(db, "before") is None


async def test_reads_see_earlier_writes(storage: Engine) -> None:
    url = storage.fresh_url()
    async with opened_database(url) as db, opened_database(url) as other:
        for i in range(50):
            await db.write(add(f"n{i}", f"h{i}"))
            assert await holder_of(db, f"n{i}") == f"h{i}"
            # Another connection represents another process.
            assert await holder_of(other, f"n{i}") == f"h{i}"


async def test_unit_sees_its_own_changes(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:

        async def unit(tx: Tx) -> str:
            await add("mine", "old")(tx)
            await tx.exec("UPDATE leases SET holder = 'new' WHERE name = 'mine'")
            row = await tx.one(GET, {"name": "mine"})
            assert row is not None
            return str(row["holder"])

        assert await db.write(unit) == "new"


async def test_read_sees_one_snapshot(storage: Engine) -> None:
    url = storage.fresh_url()
    async with opened_database(url) as db, opened_database(url) as writer:
        loop = asyncio.get_running_loop()
        seen_first, changed = asyncio.Event(), asyncio.Event()

        async def change() -> None:
            await seen_first.wait()
            await writer.write(add("n"))
            changed.set()

        async def unit(tx: Tx) -> tuple[object, object]:
            before = await tx.one(GET, {"name": "n"})
            # The unit may not wait for the writer itself, so this thread does.
            loop.call_soon_threadsafe(seen_first.set)
            _spin_until(changed)
            return before, await tx.one(GET, {"name": "n"})

        changing = asyncio.create_task(change())
        # In a thread with its own loop, so that the writer can run.
        assert await asyncio.to_thread(lambda: asyncio.run(_read_elsewhere(url, unit))) == (None, None)
        await changing
        assert await holder_of(db, "n") == "h"


def _spin_until(event: asyncio.Event) -> None:
    import time

    deadline = time.monotonic() + 60
    while not event.is_set():
        assert time.monotonic() < deadline
        time.sleep(0.001)


async def _read_elsewhere(url: str, unit):
    async with opened_database(url) as db:
        return await db.read(unit)


@pytest.mark.parametrize("how", ["write", "write_long", "read", "read_long"])
async def test_unit_that_awaits_something_else_is_rejected(storage: Engine, how: str) -> None:
    async with opened_database(storage.fresh_url()) as db:

        async def dawdle(tx: Tx) -> None:
            if how.startswith("write"):
                await add("n")(tx)
            await asyncio.sleep(0)

        with pytest.raises(ForeignAwait):
            await getattr(db, how)(dawdle)
        assert await holder_of(db, "n") is None
        await db.write(add("n", "still usable"))
        assert await holder_of(db, "n") == "still usable"


async def test_long_units_and_short_ones_take_turns(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:
        await asyncio.gather(*((db.write_long if i % 5 == 0 else db.write)(add(f"n{i}")) for i in range(50)))
        rows = await db.read_long(lambda tx: tx.all("SELECT count(*) FROM leases"))
        assert rows[0][0] == 50


async def test_cancelled_waiter_does_not_disturb_the_rest(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:
        waiting = [asyncio.create_task(db.write(add(f"n{i}"))) for i in range(40)]
        await asyncio.sleep(0)
        for task in waiting[::2]:
            task.cancel()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert outcomes[1::2] == [1] * 20
        await db.write(add("after"))
        assert await holder_of(db, "after") == "h"
