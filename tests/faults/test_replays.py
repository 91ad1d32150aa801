"""A replay of many deliveries survives kills: each is sent, duplicates have the same id, the rate is not exceeded."""

import time
from collections import defaultdict

import httpx
import pytest
from tests.bed.blocking import run_blocking
from tests.bed.engines import opened_database
from tests.bed.processes import until
from tests.faults.conftest import Store
from tests.faults.history import STORED_SECONDS, ReceivedRequest
from tests.faults.scenario import Scenario, create_scenario
from tests.faults.watchers import Watchers

from hubgate.server.clock import SECOND
from hubgate.server.storage.database import Tx

pytestmark = pytest.mark.faults

RATE, KILLS = 200, 3
# Small by default; with 200 faults, 10,000 deliveries.
PER_FAULT, LEAST = 50, 600
_ADD = """
    INSERT INTO deliveries (id, webhook_id, event_id, replay_of, seq, repo_id, repo_seq, repo_type, repo_name, scope,
        action, depth, body, is_test, state, reason, attempts, created_at, ended_at)
    SELECT :id, :webhook_id, :id, '', :number, r.id, :number, 'model', 'ada/one', 'repo', 'create', 0, e.body, 0,
        'skipped', 'quota', 0, e.created_at, e.created_at
    FROM repos r JOIN events e ON e.repo_id = r.id WHERE r.name = 'one'
"""


def add_skipped(store: Store, webhook_id: str, count: int) -> None:
    async def unit(tx: Tx) -> None:
        rows = [{"id": f"{number:024x}", "number": number, "webhook_id": webhook_id} for number in range(1, count + 1)]
        await tx.exec_many(_ADD, rows)
        await tx.exec("UPDATE webhooks SET last_seq = :count WHERE id = :id", {"id": webhook_id, "count": count})

    async def work() -> None:
        async with opened_database(store.url) as db:
            await db.write_long(unit)

    run_blocking(work())


def progress(scenario: Scenario) -> tuple[int, int, str]:
    ((total, done, state),) = scenario.rows("SELECT total, done, state FROM replays")
    return int(str(total)), int(str(done)), str(state)


def test_replay_survives_kills(store: Store, watchers: Watchers, fault_count: int) -> None:
    scenario = create_scenario(store, watchers)
    webhook_id, count = scenario.id_of("own"), max(PER_FAULT * fault_count, LEAST)
    add_skipped(store, webhook_id, count)
    # From when until when a kill took.
    kills: list[tuple[float, float]] = []
    for kill in range(KILLS + 1):
        with scenario.hub() as hub, scenario.delivering() as beside:
            if kill == 0:
                with scenario.client(hub) as ada:
                    start(ada, webhook_id, count)
            if kill == KILLS:
                until(lambda: progress(scenario)[2] == "done", 60 + count / 50)
                break
            until(lambda part=kill + 1: len(watchers.received) >= part * count // (KILLS + 1), 60 + count / 50)
            since = time.monotonic()
            scenario.kill(beside)
            scenario.kill_hub(hub)
            kills.append((since, time.monotonic()))
    assert progress(scenario) == (count, count, "done")
    check(watchers.received, count, kills)
    # When requests started, as the senders saw it.
    rows = scenario.rows("SELECT first_at FROM deliveries WHERE replay_of <> '' ORDER BY first_at")
    check_rate([int(str(at)) / SECOND for (at,) in rows], 0.99)


def start(ada: httpx.Client, webhook_id: str, count: int) -> None:
    body = {"since": "2000-01-01T00:00:00Z", "states": ["skipped"], "rate": RATE}
    answer = ada.post(f"/api/settings/webhooks/{webhook_id}/replays", json=body)
    assert (answer.status_code, answer.json()["total"]) == (202, count)


def check(received: list[ReceivedRequest], count: int, kills: list[tuple[float, float]]) -> None:
    by_number: defaultdict[int, list[ReceivedRequest]] = defaultdict(list)
    for request in sorted(received, key=lambda request: request.began):
        by_number[request.change.seq].append(request)
    assert by_number.keys() == set(range(1, count + 1)), "each is sent"
    for requests in by_number.values():
        assert len({request.delivery for request in requests}) == 1, "duplicates have the same id"
        for earlier in requests[:-1]:
            is_excused = any(since - STORED_SECONDS < earlier.began < end for since, end in kills)
            assert is_excused, "duplicates only around a kill"
    # The receiver sees delays of the network and of its own.
    check_rate(sorted(request.began for request in received), 0.9)


def check_rate(times: list[float], seconds: float) -> None:
    gaps = [later - earlier for earlier, later in zip(times, times[RATE:], strict=False)]
    assert min(gaps) >= seconds, "never above the rate"
