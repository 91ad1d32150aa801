"""`hubgate doctor` on the audit log: passes on a sealed log, and names each manipulation by SQL."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.bed.audit_log import ACME, apply_retention, record_creation, seal_all, sealer_on, verify_log, write_entries
from tests.bed.blocking import run_blocking
from tests.bed.clock import FrozenClock
from tests.bed.engines import SECRET_KEY, Engine, opened_database, settings_for
from tests.bed.processes import hubgate

from hubgate.server.accounts import signup
from hubgate.server.accounts.organizations import settings as organizations
from hubgate.server.accounts.signup import Candidate
from hubgate.server.accounts.store import organization
from hubgate.server.audit import chain, store
from hubgate.server.audit.model import SYSTEM
from hubgate.server.audit.seal import Sealer
from hubgate.server.clock import DAY, system_clock
from hubgate.server.resources import Hub, open_hub
from hubgate.server.storage.database import Tx

LOG = "audit log"


@dataclass
class Log:
    """The log of acme: four batches, the first with its founding, then three entries each; another organization too."""

    folder: Path
    url: str
    acme: str = ""

    def work(self, work: Callable[[Hub], Awaitable[None]]) -> None:
        async def run() -> None:
            hub = await open_hub(settings_for(self.url, self.folder / "data"))
            try:
                await work(hub)
            finally:
                await hub.close()

        run_blocking(run())

    def sql(self, *statements: str) -> None:
        async def work(hub: Hub) -> None:
            for statement in statements:
                await hub.db.write(lambda tx, sql=statement: tx.exec(sql.replace("ACME", self.acme)))

        self.work(work)

    def add(self, count: int = 3) -> None:
        self.work(lambda hub: self.add_on(hub, count))

    async def add_on(self, hub: Hub, count: int = 3) -> None:
        await write_entries(hub.db, count, self.acme, at=system_clock())
        await Sealer(hub.db, hub.clock, hub.secret).seal(self.acme)

    def doctor(self, **variables: str) -> list[tuple[str, str]]:
        """What it says of the log: level and text."""
        given = {
            "HUBGATE_DATABASE_URL": self.url,
            "HUBGATE_SECRET_KEY": SECRET_KEY,
            "HUBGATE_DATA_DIR": str(self.folder / "data"),
            **variables,
        }
        done = hubgate("doctor", "--json", cwd=self.folder, **given)
        said = json.loads(done.stdout)
        found = [(check["level"], check["text"]) for check in said["checks"] if check["check"] == LOG]
        assert (done.returncode == 0) == said["ok"] == all(level != "fail" for level, _ in found), said
        return found


@pytest.fixture
def log(engine: Engine, tmp_path: Path) -> Log:
    (tmp_path / "data").mkdir(mode=0o700)
    made = Log(tmp_path, engine.fresh_url())

    async def prepare(hub: Hub) -> None:
        candidate = Candidate("ada", "ada@example.org", "")
        ada = await signup.create_by_operator(hub.accounts, candidate, verified=True, operator=False)
        made.acme = (await organizations.create(hub.accounts, ada, "acme", "", SYSTEM)).id
        await organizations.create(hub.accounts, ada, "other", "", SYSTEM)
        await seal_all(hub)
        for _ in range(3):
            await made.add_on(hub)

    made.work(prepare)
    return made


def test_doctor_passes_on_a_sealed_log(log: Log) -> None:
    assert log.doctor() == [("ok", "2 organizations: 11 entries in 5 batches, unchanged; 0 entries not sealed yet")]


ENTRY = "org_id = 'ACME' AND batch"
FORGED = (
    "INSERT INTO audit_entries (id, org_id, created_at, type, message, author_name, batch, position)"
    f" VALUES ('{'9' * 24}', 'ACME', 5, 'org.add_user', 'x', 'x', "
)
PUT_BACK = (
    "UPDATE audit_heads SET seq = 3, hash = (SELECT hash FROM audit_batches b WHERE b.org_id = 'ACME' AND b.seq = 3)"
    " WHERE org_id = 'ACME'"
)
TAMPERINGS = {
    "changed entry": (
        [f"UPDATE audit_entries SET message = 'added eve' WHERE {ENTRY} = 2 AND position = 2"],
        "batch 2 was changed: an entry, the order of entries, or the batch itself.",
    ),
    "changed particulars": (
        [f"""UPDATE audit_entries SET data = '{{"user":"eve"}}' WHERE {ENTRY} = 3 AND position = 1"""],
        "batch 3 was changed: an entry, the order of entries, or the batch itself.",
    ),
    "another author": (
        [f"UPDATE audit_entries SET author_id = '{'e' * 24}' WHERE {ENTRY} = 4 AND position = 3"],
        "batch 4 was changed: an entry, the order of entries, or the batch itself.",
    ),
    "changed by a microsecond": (
        [f"UPDATE audit_entries SET created_at = created_at + 1 WHERE {ENTRY} = 2 AND position = 1"],
        "batch 2 was changed: an entry, the order of entries, or the batch itself.",
    ),
    "missing entry": (
        [f"DELETE FROM audit_entries WHERE {ENTRY} = 3 AND position = 2"],
        "batch 3 lacks entry 2 of 3.",
    ),
    "missing entries": (
        [f"DELETE FROM audit_entries WHERE {ENTRY} = 3 AND position > 1"],
        "batch 3 lacks 2 of 3 entries.",
    ),
    "added entry": (
        [FORGED + "2, 4)"],
        "batch 2 contains 4 entries, but was sealed with 3.",
    ),
    "entry taken out of its batch": (
        [f"UPDATE audit_entries SET batch = NULL, position = NULL WHERE {ENTRY} = 2 AND position = 3"],
        "batch 2 lacks entry 3 of 3.",
    ),
    "entry of no batch": (
        [FORGED + "9, 1)"],
        "an entry claims to be in batch 9, which should have no entries.",
    ),
    "swapped rows": (
        [f"UPDATE audit_entries SET position = 3 - position WHERE {ENTRY} = 2 AND position < 3"],
        "batch 2 was changed: an entry, the order of entries, or the batch itself.",
    ),
    "missing batch": (
        [f"DELETE FROM audit_entries WHERE {ENTRY} = 2", "DELETE FROM audit_batches WHERE org_id = 'ACME' AND seq = 2"],
        "batch 2 is missing.",
    ),
    "cut-off end": (
        [f"DELETE FROM audit_entries WHERE {ENTRY} = 4", "DELETE FROM audit_batches WHERE org_id = 'ACME' AND seq = 4"],
        "batch 4 is missing.",
    ),
    "cut-off end with the head put back": (
        [
            f"DELETE FROM audit_entries WHERE {ENTRY} = 4",
            "DELETE FROM audit_batches WHERE org_id = 'ACME' AND seq = 4",
            PUT_BACK,
        ],
        "the end of its chain, batch 3, was changed or sealed with a secret that is not configured.",
    ),
    "lost head": (
        ["DELETE FROM audit_heads WHERE org_id = 'ACME'"],
        "the end of its chain is not recorded.",
    ),
    "posing as retention": (
        [
            f"DELETE FROM audit_entries WHERE {ENTRY} = 1",
            "UPDATE audit_batches SET dropped_at = 5 WHERE org_id = 'ACME' AND seq = 1",
        ],
        "batch 1 is marked as dropped, but not by retention.",
    ),
    "changed batch": (
        ["UPDATE audit_batches SET sealed_at = sealed_at + 1 WHERE org_id = 'ACME' AND seq = 4"],
        "batch 4 was changed: an entry, the order of entries, or the batch itself.",
    ),
    "no log at all": (
        [f"DELETE FROM audit_{table} WHERE org_id = 'ACME'" for table in ("entries", "batches", "heads")],
        "it has no log, not even an entry about its creation.",
    ),
}


@pytest.mark.one_engine
@pytest.mark.parametrize("how", TAMPERINGS)
def test_doctor_names_each_manipulation(log: Log, how: str) -> None:
    statements, says = TAMPERINGS[how]
    log.sql(*statements)
    assert [(level, text) for level, text in log.doctor() if level == "fail"] == [("fail", f"acme: {says}")]


@pytest.mark.one_engine
def test_recomputed_chain_lacks_the_seal(log: Log) -> None:
    """Who knows the format but not the server secret can make every hash fit, and is found out at the end."""

    async def forge(hub: Hub) -> None:
        async def unit(tx: Tx) -> None:
            await tx.exec("UPDATE audit_entries SET message = 'x' WHERE batch = 2 AND org_id = :id", {"id": log.acme})
            previous = chain.FIRST_PREVIOUS_HASH
            for batch in await store.batches(tx, log.acme, 0, 10):
                entries = await store.in_batches(tx, log.acme, batch.seq, batch.seq, 10)
                again = chain.sealed_batch(log.acme, batch.seq, batch.sealed_at, previous, entries)
                sql = "UPDATE audit_batches SET hash = :hash WHERE org_id = :id AND seq = :seq"
                await tx.exec(sql, {"hash": again.hash, "id": log.acme, "seq": batch.seq})
                previous = again.hash
            await tx.exec("UPDATE audit_heads SET hash = :hash WHERE org_id = :id", {"hash": previous, "id": log.acme})

        await hub.db.write(unit)

    log.work(forge)
    says = "acme: the end of its chain, batch 4, was changed or sealed with a secret that is not configured."
    assert log.doctor() == [("fail", says)]


@pytest.mark.parametrize("how", ["cut-off end with the head put back", "lost head"])
def test_later_batches_do_not_hide_a_manipulation(log: Log, how: str) -> None:
    """New entries go on being sealed, but what was done stays on record until retention has passed it."""
    statements, _ = TAMPERINGS[how]
    log.sql(*statements)
    first_after = 4 if "cut" in how else 5
    log.add()
    log.add()
    says = f"acme: its chain was changed outside the hub before batch {first_after} was sealed."
    assert log.doctor() == [("fail", says)]

    async def forget(hub: Hub) -> None:
        later = FrozenClock(system_clock() + 10 * DAY)
        await write_entries(hub.db, 2, log.acme, at=later())
        await Sealer(hub.db, later, hub.secret).seal(log.acme)
        await apply_retention(hub.db, later, days=7)
        report = await verify_log(hub.db)
        assert (report.flaws, report.entries) == ([], 2)

    log.work(forget)


@pytest.mark.one_engine
def test_manipulation_affects_only_its_organization(log: Log) -> None:
    log.sql("UPDATE audit_entries SET message = 'x' WHERE batch = 1", "DELETE FROM audit_heads WHERE org_id <> 'ACME'")
    found = dict(text.split(": ", 1) for _, text in log.doctor())
    assert found == {
        "acme": "batch 1 was changed: an entry, the order of entries, or the batch itself.",
        "other": "the end of its chain is not recorded.",
    }


def test_log_of_a_deleted_organization_is_still_checked(log: Log) -> None:
    async def delete(hub: Hub) -> None:
        acme = await organization(hub.db, log.acme)
        assert acme is not None
        await organizations.delete(hub.accounts, acme, SYSTEM)
        await Sealer(hub.db, hub.clock, hub.secret).seal(log.acme)

    log.work(delete)
    assert log.doctor()[0][0] == "ok"
    log.sql("DELETE FROM audit_entries WHERE org_id = 'ACME' AND type = 'org.delete'")
    assert log.doctor() == [("fail", f"{log.acme}: batch 5 lacks entry 1 of 1.")]


def test_doctor_passes_after_retention(log: Log) -> None:
    async def forget(hub: Hub) -> None:
        await apply_retention(hub.db, FrozenClock(system_clock() + 10 * DAY), days=7)

    log.work(forget)
    assert log.doctor() == [("ok", "2 organizations: 0 entries in 5 batches, unchanged; 0 entries not sealed yet")]
    log.add()
    assert log.doctor() == [("ok", "2 organizations: 3 entries in 6 batches, unchanged; 0 entries not sealed yet")]
    # The hashes that are left are held in place by what came after.
    log.sql("UPDATE audit_batches SET hash = (SELECT hash FROM audit_heads h WHERE h.org_id = 'ACME') WHERE seq = 4")
    assert log.doctor()[0] == (
        "fail",
        "acme: batch 5 was changed: an entry, the order of entries, or the batch itself.",
    )


def test_unsealed_entries_are_a_warning(log: Log) -> None:
    async def wait(hub: Hub) -> None:
        await write_entries(hub.db, 2, log.acme, at=system_clock() - DAY)

    log.work(wait)
    ((level, text),) = log.doctor()
    assert level == "warn"
    assert text.startswith("2 entries not sealed yet, the oldest from ")


def test_doctor_passes_after_rotation_of_the_server_secret(log: Log) -> None:
    new = "a new secret of more than thirty-two characters"
    data = {"HUBGATE_DATABASE_URL": log.url, "HUBGATE_DATA_DIR": str(log.folder / "data")}
    both = {**data, "HUBGATE_SECRET_KEY": f"{new},{SECRET_KEY}"}
    assert log.doctor(HUBGATE_SECRET_KEY=both["HUBGATE_SECRET_KEY"])[0][0] == "ok"
    done = hubgate("admin", "keys", "reseal", "--json", cwd=log.folder, **both)
    assert json.loads(done.stdout) == {"resealed": 3}, "the signing key and two ends"
    assert log.doctor(HUBGATE_SECRET_KEY=new)[0][0] == "ok"
    assert json.loads(hubgate("admin", "keys", "reseal", "--json", cwd=log.folder, **both).stdout) == {"resealed": 0}


async def test_long_log_is_checked_in_bounded_batches(engine: Engine, clock: FrozenClock) -> None:
    """More batches and more entries than one look takes; the flaw is found in the middle."""
    async with opened_database(engine.fresh_url()) as db:
        await record_creation(db)
        await sealer_on(db, clock).seal(ACME)
        await write_entries(db, 6000)
        while await sealer_on(db, clock).seal(ACME):
            continue
        for number in range(230):
            await write_entries(db, 1, at=clock() + number)
            await sealer_on(db, clock).seal(ACME)
        report = await verify_log(db)
        assert (report.flaws, report.batches, report.entries) == ([], 243, 6231)
        await db.write(lambda tx: tx.exec("UPDATE audit_entries SET message = 'x' WHERE batch = 120"))
        assert len((await verify_log(db)).flaws) == 1
        assert "batch 120 was changed" in (await verify_log(db)).flaws[0]
