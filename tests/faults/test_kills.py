"""kill -9 at any moment loses no acknowledged write."""

import random

import pytest
from tests.bed.processes import TEST_BUILD, hub_process, until
from tests.faults.conftest import Store
from tests.faults.load import WriteLoad

pytestmark = pytest.mark.faults


def test_kill_9_of_the_whole_hub_under_load_loses_nothing(store: Store, fault_count: int) -> None:
    """Every process of two hubs on one database is killed at a random moment, repeatedly."""
    chance = random.Random(fault_count)
    acknowledged: set[str] = set()
    for round_number in range(fault_count):
        with (
            hub_process(store.folder, *store.flags, program=TEST_BUILD) as first,
            hub_process(store.folder, *store.flags, "--deliver", "off", program=TEST_BUILD) as second,
        ):
            load = WriteLoad([first.url, second.url], f"r{round_number}").start()
            load.wait_for(chance.randint(5, 60))
            first.kill_all()
            second.kill_all()
            load.stop()
        acknowledged.update(load.acknowledged)
        assert not load.refused
        assert not acknowledged - store.saved(), "an acknowledged write is missing"
        assert store.doctor_failures() == []


@pytest.mark.parametrize("failpoint", ["storage.before_commit", "storage.after_commit"])
def test_death_around_the_commit_loses_nothing(store: Store, fault_count: int, failpoint: str) -> None:
    """Before the commit nothing was acknowledged; after the commit everything is stored."""
    for round_number in range(max(2, fault_count // 10)):
        armed = {"TEST_FAILPOINTS": f"{failpoint}:{round_number % 7 + 3}"}
        with hub_process(store.folder, *store.flags, "--deliver", "off", program=TEST_BUILD, **armed) as hub:
            load = WriteLoad([hub.url], f"{failpoint}-{round_number}").start()
            until(lambda: hub.errors.count("ended with status -9") > round_number, 120)
            hub.kill_all()
            load.stop()
        assert not set(load.acknowledged) - store.saved()
        assert store.doctor_failures() == []


def test_many_stops_are_clean(store: Store, fault_count: int) -> None:
    """Each hub exits with 0 and logs only requests: no panic of a native thread, no traceback, no killed child."""
    for _ in range(max(5, fault_count // 5)):
        with hub_process(store.folder, *store.flags, new=True) as hub, hub.client() as client:
            assert client.get("/readyz").status_code == 200
            assert hub.stop() == 0
            lines = hub.errors.splitlines()
    assert all('"message":"request"' in line for line in lines), lines
