"""Careless units of work, a closing database, a damaged file: the caller gets an error and never hangs."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.bed.engines import Engine, SqliteEngine, opened_database
from tests.bed.processes import environment

from hubgate.server.errors import StorageUnavailable
from hubgate.server.storage.database import ForeignAwait, Tx

ADD = "INSERT INTO leases (name, holder, expires_at) VALUES (:name, 'h', 0)"
COUNT = "SELECT count(*) FROM leases"


def add(name: str):
    return lambda tx: tx.exec(ADD, {"name": name})


async def test_task_started_by_a_rejected_unit_cannot_write_afterwards(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:
        stray: list[asyncio.Task[int]] = []

        async def unit(tx: Tx) -> None:
            stray.append(asyncio.create_task(tx.exec(ADD, {"name": "stray"})))
            await asyncio.sleep(0)

        with pytest.raises(ForeignAwait):
            await db.write(unit)
        with pytest.raises(RuntimeError, match="this unit of work has ended"):
            await stray[0]
        row = await db.one(COUNT)
        assert row is not None
        assert row[0] == 0


async def test_reading_calls_cannot_write(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:
        with pytest.raises(ValueError, match="not a look-up"):
            await db.one(ADD + " RETURNING name", {"name": "a"})
        for read in (db.read, db.read_long):
            with pytest.raises(Exception, match=r"readonly|read-only|not answering"):
                await read(add("b"))
        row = await db.one(COUNT)
        assert row is not None
        assert row[0] == 0


async def test_row_counts_are_the_same_on_every_engine(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:
        await db.write(add("a"))
        for sql, count in (
            ("UPDATE leases SET holder = 'x' RETURNING name", 1),
            ("SELECT name FROM leases", 0),
            ("CREATE TABLE more (id bigint)", 0),
        ):
            assert await db.write(lambda tx, sql=sql: tx.exec(sql)) == count


async def test_unusual_exception_fails_only_its_own_unit(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:

        def stops(_: Tx):
            raise StopIteration

        async def own_os_error(_: Tx) -> None:
            raise FileNotFoundError("the unit's own")

        outcomes = await asyncio.gather(
            db.write(add("a")), db.write(stops), db.write(own_os_error), db.write(add("b")), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [int, RuntimeError, FileNotFoundError, int]
        row = await db.one(COUNT)
        assert row is not None
        assert row[0] == 2


async def test_after_closing_every_call_is_answered(storage: Engine) -> None:
    async with opened_database(storage.fresh_url()) as db:
        callers = [asyncio.create_task(db.write(add(f"n{i}"))) for i in range(200)]
        await asyncio.sleep(0)
        await db.close()
        outcomes = await asyncio.wait_for(asyncio.gather(*callers, return_exceptions=True), 60)
        assert {type(outcome) for outcome in outcomes} <= {int, StorageUnavailable}
        with pytest.raises(StorageUnavailable):
            await asyncio.wait_for(db.write(add("late")), 60)
        await db.close()


@pytest.mark.parametrize("damage", [b"junk that is no database at all, " * 400, b""])
async def test_file_overwritten_while_open_is_an_error_and_not_a_busy_loop(
    sqlite_template: Path, tmp_path: Path, damage: bytes
) -> None:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    path = Path(url.removeprefix("sqlite:///"))
    async with opened_database(url) as db, opened_database(url) as other:
        await db.write(add("before"))
        await other.write(add("other"))
        for name in (path, path.with_name(path.name + "-wal")):
            with name.open("r+b") as file:
                file.truncate()
                file.write(damage)
        outcomes = await asyncio.wait_for(
            asyncio.gather(*(db.write(add(f"n{i}")) for i in range(5)), return_exceptions=True), 20
        )
        assert any(isinstance(outcome, Exception) for outcome in outcomes) or damage == b""


_HOLDER = """
import asyncio, os, signal, sys
from hubgate.server.storage.engines import open_database
async def main():
    db = await open_database(sys.argv[1])
    async def unit(tx):
        await tx.exec("INSERT INTO leases (name, holder, expires_at) VALUES ('held', 'h', 0)")
        print("holding", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
    await db.write_long(unit)
    print("done", flush=True)
    await db.close()
asyncio.run(main())
"""


async def test_stopped_writer_causes_an_error_and_not_a_hang(sqlite_template: Path, tmp_path: Path) -> None:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    async with opened_database(url) as db:
        holder = subprocess.Popen(
            [sys.executable, "-c", _HOLDER, url], env=environment(), stdout=subprocess.PIPE, text=True
        )
        assert holder.stdout is not None
        assert await asyncio.to_thread(holder.stdout.readline) == "holding\n"
        with pytest.raises(StorageUnavailable):
            await asyncio.wait_for(db.write(add("waiting")), 60)
        row = await db.one(COUNT)
        assert row is not None, "reads go on"
        os.kill(holder.pid, signal.SIGCONT)
        await db.write(add("after"))
        output, _ = await asyncio.to_thread(holder.communicate)
        assert output == "done\n"
