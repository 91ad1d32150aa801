"""If any process dies, every change reaches all entitled watchers, and nobody else."""

import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.bed.blocking import run_blocking
from tests.bed.engines import SqliteEngine, set_up_database
from tests.bed.postgres import Cluster
from tests.bed.processes import until
from tests.faults.conftest import Store, make_store
from tests.faults.history import Change, Silence
from tests.faults.scene import REPOS, ChangeLoad, make_scene
from tests.faults.watchers import Watchers

pytestmark = pytest.mark.faults

MOMENTS = (
    "fan-out-after-chunk",
    "deliver-after-claim",
    "deliver-after-send",
    "deliver-before-note",
    "deliver-after-note",
    "storage.before_commit",
    "storage.after_commit",
)

LEFT = "SELECT count(*), count(lease_token) FROM deliveries WHERE state <> 'delivered'"
ATTEMPTS = "SELECT delivery_id, number, at, status FROM attempts ORDER BY delivery_id, number"


def test_kill_9_at_random_under_load_loses_no_delivery(store: Store, watchers: Watchers, fault_count: int) -> None:
    """Of the whole hub with its background process, or of a separate delivering process, repeatedly."""
    chance = random.Random(fault_count)
    watchers.answer = lambda _: (chance.random() / 50, chance.choice([200, 200, 200, 500]))
    scene = make_scene(store, watchers)
    acknowledged = 0
    for number in range(fault_count):
        with scene.hub() as hub, scene.delivering() as beside:
            load = ChangeLoad(scene, hub.url).start()
            load.wait_for(chance.randint(2, 30))
            if number % 3 == 2:
                beside.kill()
                load.wait_for(load.acknowledged + 5)
            hub.kill_all()
            acknowledged += load.stop()
    scene.settle()
    scene.check(acknowledged)


def test_death_at_the_worst_moments_loses_no_delivery(store: Store, watchers: Watchers, fault_count: int) -> None:
    """At the first, second or third such moment: changes continue until it is reached."""
    scene = make_scene(store, watchers)
    acknowledged = 0
    with scene.hub("--deliver", "off") as hub, scene.client(hub) as ada:
        for number in range(max(1, fault_count // 10)):
            for moment in MOMENTS:
                armed = {"TEST_FAILPOINTS": f"{moment}:{number % 3 + 1}"}
                with scene.delivering(**armed) as process:
                    give_up_at = time.monotonic() + 60
                    while process.poll() is None and time.monotonic() < give_up_at:
                        acknowledged += scene.changed(ada, *REPOS)
                        with contextlib.suppress(subprocess.TimeoutExpired):
                            process.wait(0.5)
                    assert process.wait(0) == -signal.SIGKILL, moment
        scene.settle()
    scene.check(acknowledged)


def test_deliveries_of_a_frozen_process_are_sent_by_the_other(store: Store, watchers: Watchers) -> None:
    """Its deliveries in flight are sent again by the other; resumed, it records nothing and sends nothing late."""
    held: list[str] = []

    def answer(name: str) -> tuple[float, int] | None:
        """The first requests are not answered."""
        held.append(name)
        return None if len(held) <= 3 else (0.0, 200)

    watchers.answer = answer
    scene = make_scene(store, watchers)
    patient = {"TEST_PACE": "8,4"}
    with scene.hub("--deliver", "off") as hub, scene.client(hub) as ada, scene.delivering(**patient) as frozen:
        acknowledged = scene.changed(ada, "ada/one", "ada/two", times=2)
        # Stopped while three answers are pending and nothing else is to do; three more deliveries wait.
        until(lambda: watchers.waiting == 3 and scene.rows(LEFT) == [(6, 3)])
        quiet = time.monotonic()
        until(lambda: time.monotonic() > quiet + 1)
        frozen.send_signal(signal.SIGSTOP)
        with scene.delivering(**patient):
            until(scene.is_settled, 40)
            written = scene.rows(ATTEMPTS)
            frozen.send_signal(signal.SIGCONT)
            # It works again: it takes part in the next deliveries.
            acknowledged += scene.changed(ada, "ada/one", times=6)
            until(scene.is_settled, 40)
        assert [row for row in scene.rows(ATTEMPTS) if row[0] in {row[0] for row in written}] == written
    scene.check(acknowledged)


def test_process_frozen_in_a_transaction_loses_no_delivery(store: Store, watchers: Watchers) -> None:
    """PostgreSQL ends its transaction after a while. On SQLite the others wait until it is killed or resumed."""
    scene = make_scene(store, watchers)
    # After the leases of its loops: among claims and results.
    armed = {"TEST_FAILPOINTS": "storage.before_commit:14:SIGSTOP"}
    with scene.hub("--deliver", "off") as hub, scene.delivering(), scene.delivering(**armed) as frozen:
        load = ChangeLoad(scene, hub.url).start()
        until(lambda: is_stopped(frozen.pid), 40)
        if store.url.startswith("sqlite"):
            frozen.kill()
        load.wait_for(load.acknowledged + 5)
        acknowledged = load.stop()
        until(scene.is_settled, 60)
    scene.check(acknowledged)


def is_stopped(pid: int) -> bool:
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout.startswith("T")


def test_stopping_process_releases_unfinished_deliveries(store: Store, watchers: Watchers) -> None:
    """Within seconds, not after a lease of half a minute, and with the same attempt number."""
    unhurried = {"TEST_PACE": ""}
    watchers.answer = lambda _: None
    scene = make_scene(store, watchers)
    with scene.hub("--deliver", "off") as hub, scene.client(hub) as ada:
        acknowledged = scene.changed(ada, "ada/two")
        with scene.delivering(**unhurried) as first:
            until(lambda: watchers.waiting == 3)
            first.terminate()
            assert first.wait(9) == 0
        assert scene.rows("SELECT DISTINCT attempts, lease_token FROM deliveries") == [(0, None)]
        watchers.answer = lambda _: (0.0, 200)
        asked_at = time.monotonic()
        with scene.delivering(**unhurried):
            until(scene.is_settled)
        assert time.monotonic() - asked_at < 15
    assert {arrival.attempt for arrival in watchers.arrivals} == {1}
    scene.check(acknowledged)


def test_deliveries_continue_after_receivers_were_down(store: Store, watchers: Watchers) -> None:
    scene = make_scene(store, watchers)
    with scene.hub() as hub, scene.client(hub) as ada:
        acknowledged = scene.changed(ada, *REPOS)
        until(lambda: len(watchers.arrivals) == 6)
        watchers.go_away()
        acknowledged += scene.changed(ada, *REPOS, times=2)
        until(lambda: scene.rows("SELECT count(*) FROM attempts WHERE status IS NULL") >= [(3,)])
        watchers.come_back()
        until(scene.is_settled, 60)
    scene.check(acknowledged)


def test_disabled_webhook_receives_nothing(store: Store, watchers: Watchers) -> None:
    """From the API's answer on, despite a backlog."""
    watchers.answer = lambda _: (0.02, 200)
    scene = make_scene(store, watchers)
    with scene.hub() as hub, scene.client(hub) as ada:
        load = ChangeLoad(scene, hub.url).start()
        load.wait_for(20)
        path = f"/api/settings/webhooks/{scene.id_of('own')}"
        assert ada.post(f"{path}/disable").status_code == 200
        since = time.monotonic()
        load.wait_for(load.acknowledged + 40)
        acknowledged = load.stop()
        until(lambda: scene.rows("SELECT count(*) FROM events WHERE fanned_at IS NULL") == [(0,)])
        skipped = scene.rows("SELECT repo_name, repo_seq FROM deliveries WHERE state = 'skipped'")
        missed = frozenset(Change(str(repo), int(str(seq))) for repo, seq in skipped)
        scene.silences.append(Silence("own", since, time.monotonic(), missed))
        assert ada.post(f"{path}/enable").status_code == 200
        acknowledged += scene.changed(ada, *REPOS)
        until(scene.is_settled, 60)
    scene.check(acknowledged, ended=("delivered", "skipped"))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_deliveries_survive_restarts_of_postgres(
    own_cluster: Cluster, watchers: Watchers, tmp_path: Path, how: signal.Signals
) -> None:
    run_blocking(set_up_database(own_cluster.url(), tmp_path))
    scene = make_scene(make_store(own_cluster.url(), tmp_path), watchers)
    with scene.hub() as hub, scene.delivering() as beside:
        load = ChangeLoad(scene, hub.url).start()
        load.wait_for(10)
        own_cluster.stop(how)
        own_cluster.start()
        load.wait_for(load.acknowledged + 10)
        acknowledged = load.stop()
        until(scene.is_settled, 60)
        assert beside.poll() is None
    scene.check(acknowledged)


def test_deliveries_survive_a_full_disk(sqlite_template: Path, watchers: Watchers, tmp_path: Path) -> None:
    """A process that cannot write sends nothing it could not record, and continues once there is space."""
    resource = pytest.importorskip("resource")
    scene = make_scene(make_store(SqliteEngine(sqlite_template, tmp_path).fresh_url(), tmp_path), watchers)
    with scene.hub("--deliver", "off") as hub, scene.client(hub) as ada, scene.delivering() as process:
        acknowledged = scene.changed(ada, *REPOS)
        until(scene.is_settled)
        before = len(watchers.arrivals)
        limits = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (4096, limits[1]))
        acknowledged += scene.changed(ada, *REPOS, times=2)
        busy = os.times().elapsed
        until(lambda: os.times().elapsed > busy + 2)
        assert len(watchers.arrivals) == before
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limits)
        until(scene.is_settled, 40)
    scene.check(acknowledged)
