"""A lost database costs callers at most a clear error, and is used again without help."""

import asyncio
import signal
import sqlite3
import threading
import time
from pathlib import Path

import asyncpg
import pytest
from tests.bed.blocking import run_blocking
from tests.bed.engines import Engine, PostgresEngine, SqliteEngine, opened_database, run_sql
from tests.bed.postgres import Cluster

from hubgate.server.errors import StorageUnavailable
from hubgate.server.storage.database import Tx
from hubgate.server.storage.signals import Signal

ADD = "INSERT INTO leases (name, holder, expires_at) VALUES (:name, 'h', 0)"
GET = "SELECT holder FROM leases WHERE name = :name"


async def test_lost_connections_are_replaced_unnoticed(own_cluster: Cluster) -> None:
    url = own_cluster.url()
    async with opened_database(url) as db:
        await asyncio.gather(*(db.write(lambda tx, i=i: tx.exec(ADD, {"name": f"n{i}"})) for i in range(20)))
        await run_sql(
            url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hubgate'",
        )
        rows = await asyncio.gather(*(db.one(GET, {"name": f"n{i}"}) for i in range(20)))
        assert all(rows)
        await db.write(lambda tx: tx.exec(ADD, {"name": "after"}))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT, signal.SIGKILL])
async def test_stopped_server_is_reported_and_used_again(own_cluster: Cluster, how: signal.Signals) -> None:
    url = own_cluster.url()
    async with opened_database(url) as db:
        await db.write(lambda tx: tx.exec(ADD, {"name": "before"}))
        await asyncio.to_thread(own_cluster.stop, how)
        for attempt in (db.one(GET, {"name": "before"}), db.write(lambda tx: tx.exec(ADD, {"name": "during"}))):
            with pytest.raises(StorageUnavailable):
                await attempt
        await asyncio.to_thread(own_cluster.start)
        assert await db.one(GET, {"name": "before"}) is not None
        await db.write(lambda tx: tx.exec(ADD, {"name": "after"}))
        assert await db.one(GET, {"name": "during"}) is None


async def test_unit_is_run_again_on_a_fresh_connection(own_cluster: Cluster) -> None:
    url = own_cluster.url()
    async with opened_database(url) as db:
        runs = 0

        async def unit(tx: Tx) -> None:
            nonlocal runs
            runs += 1
            await tx.exec(ADD, {"name": "n"})
            if runs == 1:
                await tx.one("SELECT pg_terminate_backend(pg_backend_pid())")

        await db.write(unit)
        assert runs == 2
        assert await db.one(GET, {"name": "n"}) is not None


async def test_lock_of_another_process_is_waited_for(sqlite_template: Path, tmp_path: Path) -> None:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    async with opened_database(url) as db:
        stranger = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False)
        stranger.execute("BEGIN EXCLUSIVE")
        release = threading.Timer(0.3, lambda: stranger.execute("COMMIT"))
        started = time.monotonic()
        release.start()
        await db.write(lambda tx: tx.exec(ADD, {"name": "n"}))
        assert time.monotonic() - started > 0.2
        release.join()
        stranger.close()
        assert await db.one(GET, {"name": "n"}) is not None


async def test_full_disk_is_reported_and_recovered_from(sqlite_template: Path, tmp_path: Path) -> None:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    async with opened_database(url) as db:
        # SQLite's own size limit raises the same error as a full disk.
        pages = await db.write(lambda tx: tx.one("PRAGMA page_count"))
        assert pages is not None
        await db.write(lambda tx: tx.one(f"PRAGMA max_page_count = {pages[0] + 2}"))
        big = "INSERT INTO leases (name, holder, expires_at) VALUES (:name, :holder, 0)"
        outcomes = await asyncio.gather(
            *(db.write(lambda tx, i=i: tx.exec(big, {"name": f"n{i}", "holder": "x" * 3000})) for i in range(8)),
            return_exceptions=True,
        )
        kept = {f"n{i}" for i, outcome in enumerate(outcomes) if outcome == 1}
        assert any(isinstance(outcome, StorageUnavailable) for outcome in outcomes)
        await db.write(lambda tx: tx.one("PRAGMA max_page_count = 1000000"))
        await db.write(lambda tx: tx.exec(big, {"name": "after", "holder": "x" * 3000}))
        rows = await db.read_long(lambda tx: tx.all("SELECT name FROM leases"))
        assert {row[0] for row in rows} == {*kept, "after"}


def test_tests_run_on_the_engine_versions_they_name(
    request: pytest.FixtureRequest, storage: PostgresEngine | SqliteEngine
) -> None:
    async def version() -> str:
        async with opened_database(storage.fresh_url()) as db:
            sqlite_hub = storage.name == "sqlite"
            row = await db.one("SELECT sqlite_version()" if sqlite_hub else "SELECT current_setting('server_version')")
            assert row is not None
            return str(row[0]).partition(".")[0]

    expected = "3" if storage.name == "sqlite" else request.node.callspec.params["storage"].removeprefix("postgres ")
    assert run_blocking(version()) == expected


async def test_signal_sent_while_a_listener_connects_is_not_lost(storage: Engine) -> None:
    url = storage.fresh_url()
    async with opened_database(url) as listener, opened_database(url) as sender:
        await sender.write(lambda tx: tx.exec(ADD, {"name": "connected"}))
        received = asyncio.Event()
        listening = await listener.listen(lambda signal: received.set() if signal is Signal.SHARDS else None)

        async def unit(tx: Tx) -> None:
            tx.signal(Signal.SHARDS)
            await tx.exec(ADD, {"name": "signalled"})

        await sender.write(unit)
        async with asyncio.timeout(60):
            await received.wait()
        await listening.close()


async def test_session_of_a_frozen_process_is_ended(own_cluster: Cluster) -> None:
    """It has described its next statement, and did not go on. PostgreSQL does not consider it idle."""
    url = own_cluster.url()
    async with opened_database(url) as db:
        await db.write(lambda tx: tx.exec(ADD, {"name": "locked"}))
        frozen = await asyncpg.connect(url, server_settings={"application_name": "hubgate"})
        await frozen.execute("BEGIN")
        await frozen.execute("SELECT 1 FROM leases WHERE name = 'locked' FOR UPDATE")
        await frozen.prepare("SELECT 2 FROM leases")
        await db.end_frozen_sessions(after_seconds=0)
        async with asyncio.timeout(60):
            await db.write(lambda tx: tx.exec("DELETE FROM leases WHERE name = 'locked'"))
        frozen.terminate()
