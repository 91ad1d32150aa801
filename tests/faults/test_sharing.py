"""Several hubs share one database, on either engine, under a write load without errors."""

import subprocess
import sys

import pytest
from tests.bed.processes import TEST_BUILD, environment, hub_process
from tests.faults.conftest import Store
from tests.faults.load import WriteLoad

pytestmark = pytest.mark.faults

# A third process, which uses the storage layer directly.
_WRITER = """
import asyncio, sys
from hubgate.server.storage.engines import open_database
SQL = "INSERT INTO test_writes (name, value) VALUES (:name, 'x')"
async def main(url, count):
    db = await open_database(url)
    numbers = iter(range(int(count)))
    async def caller():
        for i in numbers:
            await db.write(lambda tx: tx.exec(SQL, {"name": f"direct-{i}"}))
    await asyncio.gather(*(caller() for _ in range(16)))
    await db.close()
asyncio.run(main(*sys.argv[1:]))
"""


def test_two_hubs_share_one_database(store: Store, fault_count: int) -> None:
    direct_writes = 500 * fault_count
    with (
        hub_process(store.folder, *store.flags, program=TEST_BUILD) as first,
        hub_process(store.folder, *store.flags, "--workers", "2", program=TEST_BUILD) as second,
    ):
        load = WriteLoad([first.url, second.url], "http").start()
        direct = subprocess.run(
            [sys.executable, "-c", _WRITER, store.url, str(direct_writes)], env=environment(), timeout=300, check=False
        )
        load.wait_for(100)
        load.stop()
        assert direct.returncode == 0
        assert not load.refused
        assert first.stop() == 0
        assert second.stop() == 0
        for hub in (first, second):
            assert '"level":"error"' not in hub.errors
    assert store.saved() == {*load.acknowledged, *(f"direct-{i}" for i in range(direct_writes))}
    assert store.doctor_failures() == []
