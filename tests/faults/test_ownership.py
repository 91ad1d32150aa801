"""Several `hubgate deliver` processes that die, freeze, lose the database, and come and go."""

import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.bed.moved_clock import CLOCK, set_clock
from tests.bed.postgres import Cluster
from tests.bed.processes import until
from tests.faults.conftest import Store, create_store
from tests.faults.cut import cut_connection
from tests.faults.history import Incident
from tests.faults.scenario import DEFAULT_PACE, ChangeLoad, Scenario, create_scenario, pace
from tests.faults.watchers import Watchers

pytestmark = pytest.mark.faults

RECORDED = """
    SELECT d.id, d.state, d.attempts, d.first_at, d.first_status, a.number, a.at, a.status
    FROM deliveries d LEFT JOIN attempts a ON a.delivery_id = d.id ORDER BY d.id, a.number
"""
OWNERS = "SELECT DISTINCT sender_id FROM shards WHERE sender_id IS NOT NULL"


def requests_of(watchers: Watchers, deliveries: set[object]) -> int:
    return sum(request.delivery in deliveries for request in watchers.received)


def test_processes_divide_the_webhooks(store: Store, watchers: Watchers) -> None:
    scenario = create_scenario(store, watchers)
    with scenario.delivering(), scenario.delivering():
        scenario.until_shared(2)
        with scenario.delivering():
            scenario.until_shared(3)
        scenario.until_shared(2)


def test_killed_process_is_noticed_at_the_next_heartbeat(store: Store, watchers: Watchers) -> None:
    """Not after the time that a machine may be unreachable."""
    scenario = create_scenario(store, watchers)
    unreachable = pace(dead_after=200, heartbeat=2)
    with (
        scenario.hub("--deliver", "off") as hub,
        scenario.client(hub) as ada,
        scenario.delivering(**unreachable),
        scenario.delivering(**unreachable) as killed,
    ):
        scenario.until_shared(2)
        scenario.kill(killed)
        began = time.monotonic()
        acknowledged = scenario.change_all(ada, "ada/one", "ada/two")
        scenario.until_settled()
        scenario.until_shared(1)
        assert time.monotonic() - began < 100
    scenario.check(acknowledged)


def test_stopping_process_hands_over_at_once(store: Store, watchers: Watchers) -> None:
    """Not at the next heartbeat: the other processes get a signal."""
    scenario = create_scenario(store, watchers)
    slow = pace(dead_after=2000, heartbeat=200)
    with scenario.hub("--deliver", "off") as hub, scenario.client(hub) as ada, scenario.delivering(**slow) as first:
        until(lambda: scenario.shares() == [256])
        # It beats at once when it starts, and then finds nothing to own before the other one's next heartbeat.
        with scenario.delivering(**slow):
            scenario.terminate(first)
            assert first.wait(60) == 0
            began = time.monotonic()
            acknowledged = scenario.change_all(ada, "ada/one", "ada/two")
            scenario.until_settled()
            assert scenario.shares() == [256]
            assert time.monotonic() - began < 100
    scenario.check(acknowledged)


def test_frozen_owner_is_replaced_and_changes_nothing_later(store: Store, watchers: Watchers) -> None:
    """It neither stores nor sends anything for webhooks that it lost, and takes part again under a new id."""
    watchers.answer = lambda _: None
    scenario = create_scenario(store, watchers)
    # A deadline that is later than the takeover.
    taken_over = pace(dead_after=6, deadline=60)
    with (
        scenario.hub("--deliver", "off") as hub,
        scenario.client(hub) as ada,
        scenario.delivering(**taken_over) as frozen,
    ):
        acknowledged = scenario.change_all(ada, "ada/two", times=3)
        until(lambda: watchers.waiting == 3)
        scenario.freeze(frozen)
        # These responses reach the process when it is resumed. Their results would be new attempts.
        watchers.respond(500)
        watchers.answer = lambda _: (0.0, 200)
        before = scenario.rows(OWNERS)
        with scenario.delivering(**taken_over):
            scenario.until_settled()
            recorded = scenario.rows(RECORDED)
            deliveries: set[object] = {row[0] for row in recorded}
            sent = requests_of(watchers, deliveries)
            assert scenario.rows(OWNERS) != before
            scenario.resume(frozen)
            scenario.until_shared(2)
            acknowledged += scenario.change_all(ada, "ada/one", "ada/two", times=5)
            scenario.until_settled()
            assert before[0] not in scenario.rows(OWNERS)
        assert [row for row in scenario.rows(RECORDED) if row[0] in deliveries] == recorded
        assert requests_of(watchers, deliveries) == sent
    scenario.check(acknowledged)


@pytest.mark.parametrize("failpoint", ["deliver-before-send", "deliver-after-send", "deliver-before-store"])
def test_owner_frozen_at_the_worst_moments(
    own_cluster: Cluster, watchers: Watchers, tmp_path: Path, failpoint: str
) -> None:
    """Before it sends, before it takes note of a response, before it stores the result. Not on SQLite, where a process
    that froze while it wrote blocks all others.
    """
    scenario = create_scenario(create_store(own_cluster.url(), tmp_path), watchers)
    armed = {"TEST_FAILPOINTS": f"{failpoint}:2:SIGSTOP"}
    with (
        scenario.hub("--deliver", "off") as hub,
        scenario.client(hub) as ada,
        scenario.delivering(**pace(dead_after=6), **armed) as frozen,
    ):
        since = time.monotonic()
        acknowledged = scenario.change_all(ada, "ada/one", "ada/two", times=3)
        until(lambda: is_stopped(frozen.pid))
        scenario.frozen[frozen.pid] = since
        with scenario.delivering(**pace(dead_after=6)):
            scenario.until_settled()
            recorded = scenario.rows(RECORDED)
            scenario.resume(frozen)
            scenario.until_shared(2)
            assert scenario.rows(RECORDED) == recorded
            acknowledged += scenario.change_all(ada, "ada/one", "ada/two", times=3)
            scenario.until_settled()
    scenario.check(acknowledged)


def is_stopped(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "T"


def test_process_cut_off_from_the_database_ends_its_requests(
    own_cluster: Cluster, watchers: Watchers, tmp_path: Path
) -> None:
    """It stops sending, and aborts open requests before others take over. Once it has the database again, it takes
    part under a new id.
    """
    scenario = create_scenario(create_store(own_cluster.url(), tmp_path), watchers)
    # A deadline that is later than the takeover. Requests are aborted 0.9 of twelve seconds after the last heartbeat,
    # and at most half of its interval later.
    taken_over = pace(dead_after=12, deadline=60, heartbeat=0.3)
    watchers.answer = lambda _: None
    with (
        cut_connection(own_cluster.folder) as connection,
        scenario.hub("--deliver", "off") as hub,
        scenario.client(hub) as ada,
        scenario.delivering(own_cluster.url().replace(str(own_cluster.folder), str(connection.folder)), **taken_over),
    ):
        acknowledged = scenario.change_all(ada, "ada/two", times=3)
        until(lambda: watchers.waiting == 3)
        watchers.answer = lambda _: (0.0, 200)
        since = time.monotonic()
        connection.cut()
        with scenario.delivering(**taken_over):
            scenario.until_settled()
            aborted, sent_again = watchers.received[:3], watchers.received[3:]
            assert [request.status for request in watchers.received] == [None] * 3 + [200] * len(sent_again)
            assert max(request.ended for request in aborted) < min(request.began for request in sent_again)
            connection.restore()
            scenario.until_shared(2)
            scenario.note(Incident.CUT_OFF, since)
            sent = len(watchers.received)
            more = scenario.change_all(ada, "ada/one", "ada/two", times=3)
            scenario.until_settled()
    assert len(watchers.received) == sent + 3 * 2 + 3 * 3
    scenario.check(acknowledged + more)


def test_slow_database_delays_deliveries_and_stops_none(
    own_cluster: Cluster, watchers: Watchers, tmp_path: Path
) -> None:
    """A check of state and permission takes longer than it is valid, however few deliveries it reads."""
    scenario = create_scenario(create_store(own_cluster.url(), tmp_path), watchers)
    with (
        cut_connection(own_cluster.folder) as connection,
        scenario.hub("--deliver", "off") as hub,
        scenario.client(hub) as ada,
        scenario.delivering(own_cluster.url().replace(str(own_cluster.folder), str(connection.folder)), **DEFAULT_PACE),
    ):
        scenario.until_shared(1)
        connection.delay = 0.08
        acknowledged = scenario.change_all(ada, "ada/one", "ada/two", times=3)
        scenario.until_settled()
    scenario.check(acknowledged)


def test_processes_with_moved_clocks_deliver_in_order(store: Store, watchers: Watchers) -> None:
    """Processes are declared dead by monotonic clocks only, and no delivery waits for the clock of another process."""
    scenario = create_scenario(store, watchers)
    clocks = [store.folder / name for name in ("first.clock", "second.clock")]
    for clock in clocks:
        set_clock(clock, 0)
    acknowledged = 0
    with (
        scenario.hub("--deliver", "off") as hub,
        scenario.delivering(**DEFAULT_PACE, **{CLOCK: str(clocks[0])}),
        scenario.delivering(**DEFAULT_PACE, **{CLOCK: str(clocks[1])}),
    ):
        scenario.until_shared(2)
        for first, second in ((3600, 0), (0, 3600), (-3600, 0), (86400 * 3, -86400 * 3), (0, 0)):
            load = ChangeLoad(scenario, hub.url).start()
            load.wait_for(5)
            set_clock(clocks[0], first)
            set_clock(clocks[1], second)
            load.wait_for(load.acknowledged + 10)
            acknowledged += load.stop()
            scenario.until_settled()
    log = (store.folder / "deliver.log").read_text()
    assert "has died" not in log, log
    scenario.check(acknowledged)


def test_shards_move_while_postgres_restarts(
    own_cluster: Cluster, watchers: Watchers, tmp_path: Path, fault_count: int
) -> None:
    """Regardless of which unit fails, every shard has an owner in the end, which sends for it."""
    chance = random.Random(fault_count)
    scenario = create_scenario(create_store(own_cluster.url(), tmp_path), watchers)
    acknowledged = 0
    with scenario.hub("--deliver", "off") as hub, scenario.delivering():
        for _ in range(max(3, fault_count // 10)):
            load = ChangeLoad(scenario, hub.url).start()
            with scenario.delivering():
                began = time.monotonic()
                pause = chance.random() * 1.5
                until(lambda began=began, pause=pause: time.monotonic() > began + pause)  # type: ignore[misc]
                since = time.monotonic()
                own_cluster.stop(signal.SIGKILL)
                own_cluster.start()
                load.wait_for(load.acknowledged + 5)
                acknowledged += load.stop()
                scenario.note(Incident.CUT_OFF, since)
                scenario.until_settled()
            scenario.until_shared(1)
    scenario.check(acknowledged)


def test_shards_move_back_and_forth(store: Store, watchers: Watchers, fault_count: int) -> None:
    """Processes start, stop, die and freeze during a load. What each leaves is sent by the others."""
    chance = random.Random(fault_count)
    watchers.answer = lambda _: (chance.random() / 20, 200)
    scenario = create_scenario(store, watchers)
    # One in ten freezes.
    taken_over = pace(dead_after=6) if fault_count >= 10 else pace()
    with scenario.hub("--deliver", "off") as hub, scenario.delivering(**taken_over):
        load = ChangeLoad(scenario, hub.url, pause=0.1).start()
        try:
            for number in range(fault_count):
                with coming_and_going(scenario, number, chance, taken_over):
                    load.wait_for(load.acknowledged + 3)
        finally:
            acknowledged = load.stop()
        scenario.until_settled()
        scenario.until_shared(1)
    scenario.check(acknowledged)


@contextmanager
def coming_and_going(
    scenario: Scenario, number: int, chance: random.Random, variables: dict[str, str]
) -> Iterator[None]:
    """A process that starts, and that stops, dies or freezes as soon as it has its share or at any time before."""
    with scenario.delivering(**variables) as process:
        if chance.random() < 0.7:
            scenario.until_shared(2)
        yield
        if number % 10 == 9:
            scenario.freeze(process)
            # PostgreSQL ends the transactions of a frozen process after five seconds, one after the other.
            scenario.until_shared(1, 60)
            scenario.resume(process)
            scenario.until_shared(2)
        if number % 3:
            scenario.terminate(process)
            assert process.wait(60) == 0
    scenario.until_shared(1)
