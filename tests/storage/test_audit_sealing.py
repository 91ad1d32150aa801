"""Sealing and retention of the audit log, under concurrency and when interrupted anywhere."""

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import pytest
from tests.bed import fork_server
from tests.bed.audit_log import ACME, ADA, OTHER, apply_retention, record_creation, sealer_on, verify_log, write_entries
from tests.bed.blocking import run_blocking
from tests.bed.clock import START, FrozenClock
from tests.bed.engines import Engine, opened_database
from tests.bed.processes import environment

from hubgate.server import failpoint
from hubgate.server.audit import store
from hubgate.server.audit.filters import Filter
from hubgate.server.audit.model import EntryType
from hubgate.server.audit.read import CHAIN_START as BEGINNING
from hubgate.server.audit.read import follow
from hubgate.server.audit.record import record
from hubgate.server.audit.seal import BATCH_SIZE
from hubgate.server.clock import DAY
from hubgate.server.storage.database import Database


async def sizes(db: Database, org_id: str = ACME) -> list[int]:
    return [batch.entries for batch in await db.read_long(lambda tx: store.batches(tx, org_id, 0, 10_000))]


async def sealed_messages(db: Database, org_id: str = ACME) -> list[str]:
    return [listed.entry.message for listed in (await follow(db, org_id, Filter(), BEGINNING, 100_000)).entries]


async def unsealed(db: Database, org_id: str = ACME) -> int:
    return (await db.read_long(lambda tx: store.waiting(tx, org_id)))[0]


async def test_entries_become_batches_that_verify(storage: Engine, clock: FrozenClock) -> None:
    async with opened_database(storage.fresh_url()) as db:
        await record_creation(db)
        await write_entries(db, 2 * BATCH_SIZE + 3, at=START + 1)
        await record_creation(db, OTHER)
        sealer = sealer_on(db, clock)
        while await sealer.step():
            clock.advance(1)
        assert await sizes(db) == [BATCH_SIZE, BATCH_SIZE, 4]
        assert await sizes(db, OTHER) == [1]
        assert not await sealer.step()
        assert await sizes(db) == [BATCH_SIZE, BATCH_SIZE, 4], "nothing new, no batch"
        assert await sealed_messages(db) == ["created acme", *(f"added user{n}" for n in range(2 * BATCH_SIZE + 3))]
        report = await verify_log(db)
        assert (report.flaws, report.organizations, report.batches) == ([], 2, 4)
        assert (report.entries, report.waiting) == (2 * BATCH_SIZE + 5, 0)


async def test_long_backlog_does_not_delay_others(storage: Engine, clock: FrozenClock) -> None:
    async with opened_database(storage.fresh_url()) as db:
        await record_creation(db)
        await write_entries(db, 5 * BATCH_SIZE)
        await record_creation(db, OTHER)
        sealer = sealer_on(db, clock)
        assert await sealer.step(), "acme has more"
        assert await sizes(db) == [BATCH_SIZE]
        assert await sizes(db, OTHER) == [1], "its turn came in the first round"
        await write_entries(db, 1, OTHER)
        assert await sealer.step()
        assert await sizes(db, OTHER) == [1, 1]


async def test_looking_for_work_does_not_scan_the_log(storage: Engine, clock: FrozenClock) -> None:
    """It happens every second."""
    async with opened_database(storage.fresh_url()) as db:
        await record_creation(db)
        await write_entries(db, 4 * BATCH_SIZE)
        while await sealer_on(db, clock).seal(ACME):
            continue
        explain = "EXPLAIN QUERY PLAN" if storage.name == "sqlite" else "EXPLAIN"
        plan = await db.read_long(lambda tx: tx.all(f"{explain} {store.NEXT_UNSEALED}", {"after": ""}))
        assert "ix_audit_entries_unsealed" in " ".join(str(value) for row in plan for value in row)


async def test_organization_that_cannot_be_sealed_does_not_delay_the_rest(storage: Engine, clock: FrozenClock) -> None:
    async with opened_database(storage.fresh_url()) as db:
        await record_creation(db)
        await record_creation(db, OTHER)
        await db.write(lambda tx: tx.exec("UPDATE audit_entries SET data = '{' WHERE org_id = :o", {"o": ACME}))
        sealer = sealer_on(db, clock)
        with pytest.raises(ValueError):
            await sealer.step()
        assert not await sealer.step()
        assert await sizes(db, OTHER) == [1]


async def test_concurrent_sealers_seal_each_entry_once(storage: Engine, clock: FrozenClock) -> None:
    url = storage.fresh_url()
    async with opened_database(url) as here, opened_database(url) as there:
        await record_creation(here)
        await write_entries(here, 40, at=START + 1)
        for start in range(10):
            await write_entries(here, 20, at=START + 1000 * (start + 1))
            await asyncio.gather(*(sealer_on(db, clock).seal(ACME) for db in (here, there, here, there)))
        while await unsealed(here):
            await sealer_on(here, clock).seal(ACME)
        messages = await sealed_messages(here)
        assert len(messages) == sum(await sizes(here)) == 241
        assert (await verify_log(here)).flaws == []


async def test_sealing_does_not_block_writers(storage: Engine, clock: FrozenClock) -> None:
    """Entries that it missed are in a later batch."""
    url = storage.fresh_url()
    async with opened_database(url) as here, opened_database(url) as there:
        await record_creation(here)
        writing = True

        async def write(number: int) -> None:
            for turn in range(25):
                text = f"writer {number}, turn {turn}"
                await there.write(
                    lambda tx, text=text: record(tx, ACME, EntryType.ORG_ADD_USER, text, ADA, clock() + 5)
                )

        async def seal(db: Database) -> None:
            while writing:
                clock.now += 7
                await sealer_on(db, clock).seal(ACME)

        sealing = [asyncio.create_task(seal(db)) for db in (here, there)]
        await asyncio.gather(*map(write, range(8)))
        writing = False
        await asyncio.gather(*sealing)
        await sealer_on(here, clock).seal(ACME)
        messages = await sealed_messages(here)
        assert len(messages) == len(set(messages)) == 201
        assert (await verify_log(here)).flaws == []


async def test_late_commit_is_in_the_batch_that_finds_it(storage: Engine, clock: FrozenClock) -> None:
    """Its time is before that of sealed entries. Followers still get it, once."""
    url = storage.fresh_url()
    async with opened_database(url) as db:
        await record_creation(db)
        late = connection = None
        if storage.name == "postgres":
            connection = await asyncpg.connect(url)
            late = connection.transaction()
            await late.start()
            await connection.execute(
                "INSERT INTO audit_entries (id, org_id, created_at, type, message, author_name)"
                f" VALUES ('{'9' * 24}', '{ACME}', {START + 1}, 'org.add_user', 'late', 'ada')"
            )
        await write_entries(db, 3, at=START + 10)
        await sealer_on(db, clock).seal(ACME)
        first = await follow(db, ACME, Filter(), BEGINNING, 100)
        assert len(first.entries) == 4
        if late is not None and connection is not None:
            await late.commit()
            await connection.close()
        else:
            # SQLite has one writer at a time, so an entry can only be late by its own clock.
            await db.write(lambda tx: record(tx, ACME, EntryType.ORG_ADD_USER, "late", ADA, START + 1))
        await sealer_on(db, clock).seal(ACME)
        rest = await follow(db, ACME, Filter(), first.end, 100)
        assert [listed.entry.message for listed in rest.entries] == ["late"]
        assert (await follow(db, ACME, Filter(), rest.end, 100)).entries == []
        assert (await verify_log(db)).flaws == []


class Cut(Exception):
    pass


@contextmanager
def cut_off() -> Iterator[None]:
    def cut() -> None:
        raise Cut

    failpoint.armed["audit.sealing"] = cut
    try:
        yield
    finally:
        del failpoint.armed["audit.sealing"]


async def test_interrupted_sealing_changes_nothing(storage: Engine, clock: FrozenClock) -> None:
    async with opened_database(storage.fresh_url()) as db:
        await record_creation(db)
        await sealer_on(db, clock).seal(ACME)
        await write_entries(db, 5)
        with cut_off(), pytest.raises(Cut):
            await sealer_on(db, clock).seal(ACME)
        assert await unsealed(db) == 5
        assert await sizes(db) == [1]
        assert (await verify_log(db)).flaws == []
        assert await sealer_on(db, clock).seal(ACME) == 5
        assert await sizes(db) == [1, 5]
        assert (await verify_log(db)).flaws == []


@pytest.mark.parametrize("moment", ["audit.sealing", "storage.before_commit", "storage.after_commit"])
def test_chain_is_intact_after_a_kill_anywhere(storage: Engine, moment: str, tmp_path: Path) -> None:
    url = storage.fresh_url()

    async def prepare() -> None:
        async with opened_database(url) as db:
            await record_creation(db)
            await write_entries(db, 7)

    run_blocking(prepare())
    command = [sys.executable, "-m", "tests.storage.killed_sealer", url, moment]
    assert fork_server.run(command, tmp_path, environment(), b"", 60)[0] == -signal.SIGKILL

    async def look() -> None:
        async with opened_database(url) as db:
            done = moment == "storage.after_commit"
            assert await sizes(db) == ([8] if done else [])
            assert (await verify_log(db)).flaws == []
            assert await sealer_on(db, FrozenClock()).seal(ACME) == (0 if done else 8)
            assert await sizes(db) == [8]
            assert (await verify_log(db)).flaws == []

    run_blocking(look())


async def test_retention_drops_whole_batches_and_retains_their_hashes(storage: Engine, clock: FrozenClock) -> None:
    async with opened_database(storage.fresh_url()) as db:
        await record_creation(db)
        await sealer_on(db, clock).seal(ACME)
        for _ in range(3):
            clock.now += 10 * DAY
            await write_entries(db, 4, at=clock())
            await sealer_on(db, clock).seal(ACME)
        await write_entries(db, 2, at=START)
        before = await db.read_long(lambda tx: store.batches(tx, ACME, 0, 10))
        await apply_retention(db, clock, days=15)
        after = await db.read_long(lambda tx: store.batches(tx, ACME, 0, 10))
        assert [batch.dropped_at for batch in after] == [clock(), clock(), None, None]
        assert [batch.hash for batch in after] == [batch.hash for batch in before]
        assert len(await sealed_messages(db)) == 8
        assert await unsealed(db) == 2, "what is not sealed is not dropped, however old"
        report = await verify_log(db)
        assert (report.flaws, report.batches, report.entries) == ([], 4, 8)
        # The chain continues, and dropped batches do not return.
        await sealer_on(db, clock).seal(ACME)
        clock.now += 100 * DAY
        await apply_retention(db, clock, days=15)
        assert await sealed_messages(db) == []
        assert (await verify_log(db)).flaws == []


async def test_retention_during_sealing_keeps_the_chain_intact(storage: Engine, clock: FrozenClock) -> None:
    url = storage.fresh_url()
    async with opened_database(url) as here, opened_database(url) as there:
        await record_creation(here)
        for number in range(12):
            await write_entries(here, 3, at=START + number)
            await sealer_on(here, clock).seal(ACME)
        clock.now += 30 * DAY

        async def go_on() -> None:
            for number in range(12):
                await write_entries(here, 2, at=clock() + number)
                while await unsealed(here):
                    await sealer_on(here, clock).seal(ACME)

        await asyncio.gather(apply_retention(there, clock, days=7), go_on())
        batches = await here.read_long(lambda tx: store.batches(tx, ACME, 0, 100))
        assert [batch.dropped_at is not None for batch in batches] == [True] * 12 + [False] * 12
        assert (await verify_log(here)).flaws == []


async def test_batch_that_does_not_verify_is_not_dropped(storage: Engine, clock: FrozenClock) -> None:
    async with opened_database(storage.fresh_url()) as db:
        for org_id in (ACME, OTHER):
            await record_creation(db, org_id)
            await sealer_on(db, clock).seal(org_id)
        await db.write(lambda tx: tx.exec("UPDATE audit_entries SET message = 'x' WHERE org_id = :o", {"o": ACME}))
        clock.now += 30 * DAY
        await apply_retention(db, clock, days=7)
        assert await sealed_messages(db) == ["x"]
        assert await sealed_messages(db, OTHER) == [], "the others are not kept for it"
        assert len((await verify_log(db)).flaws) == 1
