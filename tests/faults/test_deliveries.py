"""If any process dies, every change reaches all entitled watchers, and no others."""

import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.bed.engines import SqliteEngine
from tests.bed.postgres import Cluster
from tests.bed.processes import until
from tests.faults.conftest import Store, create_store
from tests.faults.history import Change, DisabledPeriod, Incident
from tests.faults.scenario import REPOS, ChangeLoad, create_scenario, pace
from tests.faults.watchers import Watchers

pytestmark = pytest.mark.faults

FAILPOINTS = (
    "fan-out-after-chunk",
    "deliver-before-send",
    "deliver-after-send",
    "deliver-before-store",
    "deliver-after-store",
    "storage.before_commit",
    "storage.after_commit",
)


def test_kill_9_at_random_under_load_loses_no_delivery(store: Store, watchers: Watchers, fault_count: int) -> None:
    """The whole hub with its background process, or a separate delivery process, is killed repeatedly."""
    chance = random.Random(fault_count)
    watchers.answer = lambda _: (chance.random() / 50, chance.choice([200, 200, 200, 500]))
    scenario = create_scenario(store, watchers)
    acknowledged = 0
    for number in range(fault_count):
        with scenario.hub() as hub, scenario.delivering() as beside:
            load = ChangeLoad(scenario, hub.url).start()
            load.wait_for(chance.randint(2, 30))
            if number % 3 == 2:
                scenario.kill(beside)
                load.wait_for(load.acknowledged + 5)
            scenario.kill_hub(hub)
            acknowledged += load.stop()
    scenario.settle()
    scenario.check(acknowledged)


def test_death_at_the_worst_moments_loses_no_delivery(store: Store, watchers: Watchers, fault_count: int) -> None:
    """The process dies at the first, second or third hit of a failpoint; changes continue until then."""
    scenario = create_scenario(store, watchers)
    acknowledged = 0
    with scenario.hub("--deliver", "off") as hub, scenario.client(hub) as ada:
        for number in range(max(1, fault_count // 10)):
            for failpoint in FAILPOINTS:
                armed = {"TEST_FAILPOINTS": f"{failpoint}:{number % 3 + 1}"}
                with scenario.delivering(**armed) as process:
                    deadline = time.monotonic() + 120
                    alive_at = time.monotonic()
                    while process.poll() is None and time.monotonic() < deadline:
                        alive_at = time.monotonic()
                        acknowledged += scenario.change_all(ada, *REPOS)
                        with contextlib.suppress(subprocess.TimeoutExpired):
                            process.wait(0.5)
                    assert process.wait(0) == -signal.SIGKILL, failpoint
                    scenario.note(Incident.DIED, alive_at)
        scenario.settle()
    scenario.check(acknowledged)


def test_process_frozen_in_a_transaction_loses_no_delivery(store: Store, watchers: Watchers) -> None:
    """PostgreSQL ends the transaction after a while. On SQLite other processes wait until it is killed or resumed."""
    scenario = create_scenario(store, watchers)
    # Later than the commits that lease its loops and claim shards: the commit of a fan-out or of results.
    armed = {"TEST_FAILPOINTS": "storage.before_commit:80:SIGSTOP"}
    taken_over = pace(dead_after=6)
    with (
        scenario.hub("--deliver", "off") as hub,
        scenario.delivering(**taken_over),
        scenario.delivering(**taken_over, **armed) as frozen,
    ):
        scenario.until_shared(2)
        load = ChangeLoad(scenario, hub.url).start()
        started = time.monotonic()
        until(lambda: is_stopped(frozen.pid))
        scenario.frozen[frozen.pid] = started
        if store.url.startswith("sqlite"):
            scenario.kill(frozen)
        load.wait_for(load.acknowledged + 5)
        acknowledged = load.stop()
        scenario.until_settled()
    scenario.check(acknowledged)


def is_stopped(pid: int) -> bool:
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout.startswith("T")


def test_stopping_process_releases_unfinished_deliveries(store: Store, watchers: Watchers) -> None:
    """The next process sends them at once, with the same attempt number."""
    watchers.answer = lambda _: None
    scenario = create_scenario(store, watchers)
    unreachable = pace(dead_after=200, deadline=60, heartbeat=2)
    with scenario.hub("--deliver", "off") as hub, scenario.client(hub) as ada:
        acknowledged = scenario.change_all(ada, "ada/two")
        with scenario.delivering(**unreachable) as first:
            until(lambda: watchers.waiting == 3)
            scenario.terminate(first)
            assert first.wait(60) == 0
        assert scenario.rows("SELECT DISTINCT attempts, state FROM deliveries") == [(0, "pending")]
        assert scenario.rows("SELECT DISTINCT sender_id FROM shards") == [(None,)]
        assert scenario.rows("SELECT count(*) FROM senders") == [(0,)]
        watchers.answer = lambda _: (0.0, 200)
        started = time.monotonic()
        with scenario.delivering(**unreachable):
            scenario.until_settled()
        assert time.monotonic() - started < 100
    assert {request.attempt for request in watchers.received} == {1}
    scenario.check(acknowledged)


def test_deliveries_continue_after_receivers_were_down(store: Store, watchers: Watchers) -> None:
    scenario = create_scenario(store, watchers)
    # The failure of an attempt is hidden until its deadline.
    with scenario.hub(**pace(deadline=4)) as hub, scenario.client(hub) as ada:
        acknowledged = scenario.change_all(ada, *REPOS)
        until(lambda: len(watchers.received) == 6)
        watchers.stop_listening()
        acknowledged += scenario.change_all(ada, *REPOS, times=2)
        until(lambda: scenario.rows("SELECT count(*) FROM deliveries WHERE error <> ''") >= [(3,)])
        watchers.listen()
        scenario.until_settled()
    scenario.check(acknowledged)


def test_disabled_webhook_receives_nothing(store: Store, watchers: Watchers) -> None:
    """Nothing is sent after the API's response, despite a backlog."""
    watchers.answer = lambda _: (0.02, 200)
    scenario = create_scenario(store, watchers)
    with scenario.hub() as hub, scenario.client(hub) as ada:
        load = ChangeLoad(scenario, hub.url).start()
        load.wait_for(20)
        path = f"/api/settings/webhooks/{scenario.id_of('own')}"
        assert ada.post(f"{path}/disable").status_code == 200
        since, before = time.monotonic(), scenario.changes()
        load.wait_for(load.acknowledged + 40)
        acknowledged = load.stop()
        until(lambda: scenario.rows("SELECT count(*) FROM events WHERE fanned_at IS NULL") == [(0,)])
        skipped = scenario.rows("SELECT repo_name, repo_seq FROM deliveries WHERE state = 'skipped'")
        missed = frozenset(Change(str(repo), int(str(seq))) for repo, seq in skipped)
        scenario.disabled_periods.append(DisabledPeriod("own", since, time.monotonic(), missed))
        assert ada.post(f"{path}/enable").status_code == 200
        acknowledged += scenario.change_all(ada, *REPOS)
        scenario.until_settled()
    scenario.check(acknowledged, final_states=("delivered", "skipped"))
    # No request was in flight for changes that were committed later.
    later = missed - before
    assert later
    assert not later & {request.change for request in watchers.received if request.address == "own"}


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_deliveries_survive_restarts_of_postgres(
    own_cluster: Cluster, watchers: Watchers, tmp_path: Path, how: signal.Signals
) -> None:
    scenario = create_scenario(create_store(own_cluster.url(), tmp_path), watchers)
    with scenario.hub() as hub, scenario.delivering() as beside:
        load = ChangeLoad(scenario, hub.url).start()
        load.wait_for(10)
        since = time.monotonic()
        own_cluster.stop(how)
        own_cluster.start()
        load.wait_for(load.acknowledged + 10)
        scenario.note(Incident.CUT_OFF, since)
        acknowledged = load.stop()
        scenario.until_settled()
        assert beside.poll() is None
    scenario.check(acknowledged)


def test_deliveries_survive_a_full_disk(sqlite_template: Path, watchers: Watchers, tmp_path: Path) -> None:
    """A process that cannot write sends nothing, because it could not record it, and continues once there is space."""
    resource = pytest.importorskip("resource")
    scenario = create_scenario(create_store(SqliteEngine(sqlite_template, tmp_path).fresh_url(), tmp_path), watchers)
    with scenario.hub("--deliver", "off") as hub, scenario.client(hub) as ada, scenario.delivering() as process:
        acknowledged = scenario.change_all(ada, *REPOS)
        scenario.until_settled()
        ((before,),) = scenario.rows("SELECT count(*) FROM deliveries")
        assert len(watchers.received) == before
        limits = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (4096, limits[1]))
        acknowledged += scenario.change_all(ada, *REPOS, times=2)
        limited_at = os.times().elapsed
        until(lambda: os.times().elapsed > limited_at + 2)
        assert len(watchers.received) == before
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limits)
        scenario.until_settled()
    scenario.check(acknowledged)
