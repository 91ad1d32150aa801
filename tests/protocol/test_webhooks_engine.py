"""The delivery engine step by step, with a controlled clock: circuit breaker, lanes, limits, retention."""

import asyncio
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from tests.bed.background_delivery import deliver_in_background
from tests.bed.engines import Engine, settings_for
from tests.bed.people import submit
from tests.bed.processes import until
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.stepwise_delivery import stepwise
from tests.bed.webhooks import LOGS, Receiver, create_webhook, logs, run_receiver, settle, within

from hubgate.server.resources import Hub
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering.deliverer import Deliverer
from hubgate.server.webhooks.fanout.fanning import FanOut
from hubgate.server.webhooks.model import BREAKER_OPENS_AFTER
from hubgate.server.webhooks.retention.deletion import Retention
from hubgate.server.webhooks.shards.store import SHARDS, shard_of


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    settings = settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8", webhook_quota="30")
    with run_hub(settings) as started:
        yield started


def test_breaker_lets_one_delivery_through(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    receiver.status = 500
    webhook = create_webhook(ada, receiver.url, "user:ada")
    for number in range(20):
        create_repo(ada, f"tiny{number}")
    assert 10 <= settle(hub) <= 17, "the tenth opens it while others are in flight"
    hub.clock.advance(9.9)
    assert settle(hub) == 0
    assert {log["state"] for log in logs(ada, webhook)} == {"parked"}
    parked = ada.get(LOGS.format(webhook["id"]), params={"state": "parked", "limit": 5}).json()
    assert len(parked) == 5
    # The first attempt was at :20, and ten seconds later one may be sent.
    assert {log["nextAttemptAt"] for log in logs(ada, webhook)} == {"2026-09-21T14:13:30.000Z"}
    assert ada.get(LOGS.format(webhook["id"]), params={"state": "retrying"}).json() == []
    hub.clock.advance(0.2)
    receiver.hold()
    with stepwise(hub) as steps:
        assert len(steps.start()) == 1, "one, as a probe"
        receiver.release(1)
        steps.run()
    receiver.stop_holding()
    for closed_for in (20, 40):
        hub.clock.advance(closed_for - 0.1)
        assert settle(hub) == 0, "twice as long"
        hub.clock.advance(0.2)
        assert settle(hub) == 1
    receiver.status = 200
    hub.clock.advance(80)
    assert settle(hub) == 20, "one success closes it"
    assert {log["state"] for log in logs(ada, webhook)} == {"delivered"}


@pytest.mark.parametrize("is_answered", [True, False], ids=["answered before", "answered after"])
def test_410_of_the_old_url_does_not_suspend_the_new_one(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client, browser: httpx.Client, is_answered: bool
) -> None:
    receiver.status = 410
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    receiver.hold()
    with stepwise(hub) as steps:
        assert len(steps.start()) == 1
        if is_answered:
            receiver.release(1)
            steps.wait_for_results(1)
        moved = {"url": f"{receiver.url}/new", "watched": webhook["watched"], "domains": webhook["domains"]}
        assert ada.post(f"/api/settings/webhooks/{webhook['id']}", json=moved).status_code == 200
        if not is_answered:
            receiver.release(1)
            steps.wait_for_results(1)
        steps.store()
        until(lambda: len(receiver.received) == 2)
        assert [one.attempts for one in steps.in_flight] == [1], "the new one gets what the old one did not accept"
    receiver.stop_holding()
    assert ada.get(f"/api/settings/webhooks/{webhook['id']}").json()["webhook"]["disabled"] is False
    assert "No success since" not in browser.get(f"/settings/webhooks/{webhook['id']}").text
    receiver.status = 200
    assert settle(hub) == 1
    assert [log["state"] for log in logs(ada, webhook)] == ["delivered"]


def test_test_delivery_does_not_wait_for_the_breaker(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    """An owner who fixed the receiver checks it with a test."""
    receiver.status = 500
    webhook = create_webhook(ada, receiver.url, "user:ada")
    for number in range(20):
        create_repo(ada, f"tiny{number}")
    count = settle(hub)
    assert 10 <= count <= 17
    hub.clock.advance(6)
    test = f"/api/settings/webhooks/{webhook['id']}/test"
    with deliver_in_background(hub):
        assert ada.post(test).json()["status"] == 500
    settle(hub)
    assert [one.headers.get("x-hubgate-test") for one in receiver.received[count:]] == ["1", None], (
        "itself, then a probe"
    )
    times = sorted(log["nextAttemptAt"] for log in logs(ada, webhook) if log["id"] != log["event"]["id"])
    assert set(times[:-1]) == {"2026-09-21T14:13:46.000Z"}, "and a longer pause"
    assert times[-1] >= times[0], "for the probe perhaps until its next attempt"
    receiver.status = 200
    with deliver_in_background(hub):
        assert ada.post(test).json()["status"] == 200
    hub.clock.advance(6)
    settle(hub)
    states = sorted(log["state"] for log in logs(ada, webhook) if log["id"] != log["event"]["id"])
    assert states[:-1] == ["delivered"] * 19, "all except perhaps the probe, whose next attempt is later"
    hub.clock.advance(40)
    settle(hub)
    assert {log["state"] for log in logs(ada, webhook) if log["id"] != log["event"]["id"]} == {"delivered"}


def test_result_of_an_earlier_attempt_does_not_reopen_the_breaker(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client
) -> None:
    """It was sent before the pause began, so it does not extend one that a test has ended."""
    receiver.status = 500
    webhook = create_webhook(ada, receiver.url, "user:ada")
    for number in range(14):
        create_repo(ada, f"tiny{number}")
    receiver.hold()
    with stepwise(hub) as steps, ThreadPoolExecutor(1) as pool:
        assert len(steps.start()) == 8
        receiver.release(6)
        steps.wait_for_results(6)
        assert len(steps.start()) == 8
        hub.clock.advance(1)
        receiver.release(4)
        steps.wait_for_results(10)
        hub.clock.advance(2)
        steps.store()
        earlier = steps.in_flight
        assert len(earlier) == 4
        asked = pool.submit(ada.post, f"/api/settings/webhooks/{webhook['id']}/test")
        until(lambda: any(log["attempts"] == 0 and log["id"] == log["event"]["id"] for log in logs(ada, webhook)))
        hub.clock.advance(1)
        steps.start()
        assert steps.in_flight == earlier, "one at a time"
        receiver.release(len(earlier))
        steps.wait_for_results(len(earlier))
        receiver.status = 200
        steps.store()
        (test,) = steps.in_flight
        assert test.is_test
        receiver.release(1)
        steps.wait_for_results(1)
        steps.store()
        assert asked.result().json()["status"] == 200


def test_loop_stays_a_loop_after_a_suspension(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client, browser: httpx.Client
) -> None:
    receiver.status = 410
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    settle(hub)
    deep = {"x-hubgate-depth": "4"}
    assert ada.post("/api/repos/create", json={"name": "deep"}, headers=deep).status_code == 200
    create_repo(ada, "after")
    settle(hub)
    receiver.status, receiver.received[:] = 200, []
    submit(browser, f"/settings/webhooks/{webhook['id']}", f"/settings/webhooks/{webhook['id']}/enable")
    settle(hub)
    assert sorted(one.json["repo"]["name"] for one in receiver.received) == ["ada/after", "ada/tiny"]
    (loop,) = [log for log in logs(ada, webhook) if log["repo"]["name"] == "ada/deep"]
    assert (loop["state"], loop["reason"]) == ("skipped", "loop")


@pytest.mark.parametrize("together", [True, False])
def test_result_in_flight_does_not_change_the_reason_of_a_suspension(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client, browser: httpx.Client, together: bool
) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    create_repo(ada, "huge")
    receiver.status = 410
    receiver.hold()
    with stepwise(hub) as steps:
        assert len(steps.start()) == 2
        receiver.release(1)
        steps.wait_for_results(1)
        if not together:
            steps.store()
        receiver.status = 200
        receiver.release(1)
        steps.wait_for_results(2 if together else 1)
        steps.store()
    assert "the receiver answered 410" in browser.get(f"/settings/webhooks/{webhook['id']}").text
    assert sorted(log["state"] for log in logs(ada, webhook)) == ["delivered", "failed"], "what arrived has arrived"


def test_days_without_an_attempt_do_not_count_as_failure(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client, browser: httpx.Client
) -> None:
    receiver.status = 500
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    settle(hub)
    while logs(ada, webhook)[0]["state"] != "failed":
        hub.clock.advance(2 * 3600)
        settle(hub)
    hub.clock.advance(10 * 86_400)
    shown = browser.get(f"/settings/webhooks/{webhook['id']}").text
    assert "No success since" in shown
    assert "will be suspended" not in shown
    with deliver_in_background(hub):
        # A test has no consequences.
        assert ada.post(f"/api/settings/webhooks/{webhook['id']}/test").json()["status"] == 500
    create_repo(ada, "huge")
    assert settle(hub) == 1
    assert logs(ada, webhook)[0]["state"] == "parked", "to be tried again"
    assert ada.get(f"/api/settings/webhooks/{webhook['id']}").json()["webhook"]["disabled"] is False


def test_ordered_webhook_blocks_its_lane_for_five_minutes(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client
) -> None:
    receiver.status = 500
    webhook = create_webhook(ada, receiver.url, "user:ada", ordered=True)
    # Waiting for the first attempt does not count.
    create_repo(ada, "tiny")
    hub.clock.advance(3600)
    create_commit(ada, "ada/tiny", {"a.txt": b"one"})
    assert settle(hub) == 1
    assert [log["state"] for log in logs(ada, webhook)] == ["parked", "retrying"]
    hub.clock.advance(290)
    settle(hub)
    assert set(receiver.kinds) == {"repo create"}
    hub.clock.advance(11)
    settle(hub)
    assert "repo.content update" in receiver.kinds


def test_later_deliveries_overtake_a_failed_one(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    receiver.status = 500
    create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    create_commit(ada, "ada/tiny", {"a.txt": b"one"})
    receiver.hold()
    with stepwise(hub) as steps:
        assert [one.repo_seq for one in steps.start()] == [1]
        assert [one.repo_seq for one in steps.start()] == [1], "not before the first attempt has ended"
        receiver.release(1)
        steps.wait_for_results(1)
        assert [one.repo_seq for one in steps.start()] == [2], "not when its result is stored"
    receiver.hold()
    with stepwise(hub) as steps:
        assert [one.repo_seq for one in steps.start()] == [1], "nobody knows the outcome: again, in order"


def test_retry_does_not_block_later_deliveries(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    receiver.status = 500
    create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    create_commit(ada, "ada/tiny", {"a.txt": b"one"})
    assert settle(hub) == 2
    assert receiver.kinds == ["repo create", "repo.content update"]


def test_at_most_eight_deliveries_of_a_webhook_are_in_flight(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client
) -> None:
    create_webhook(ada, receiver.url, "user:ada")
    for number in range(12):
        create_repo(ada, f"tiny{number}")
    receiver.hold()
    with stepwise(hub) as steps:
        first = steps.start()
        assert len(first) == 8
        create_repo(ada, "more")
        assert steps.start() == first
        receiver.release(3)
        steps.wait_for_results(3)
        assert len(steps.start()) == 8
    with stepwise(hub) as one, stepwise(hub) as other:
        assert (len(one.start()), other.start()) == (8, []), "however many processes there are"


def test_webhook_disabled_while_a_delivery_is_in_flight(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    receiver.status = 500
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    for text in (b"one", b"two"):
        create_commit(ada, "ada/tiny", {"a.txt": text})
    receiver.hold()
    with stepwise(hub) as steps:
        assert len(steps.start()) == 1
        ada.post(f"/api/settings/webhooks/{webhook['id']}/disable")
        steps.wait_until_checks_are_stale()
        receiver.release(1)
        steps.wait_for_results(1)
        assert steps.start() == []
        steps.store()
        assert steps.in_flight == []
    hub.clock.advance(31)
    receiver.stop_holding()
    assert settle(hub) == 0
    assert [(log["state"], log["reason"]) for log in logs(ada, webhook)] == [("skipped", "disabled")] * 3
    assert len(receiver.received) == 1


def test_success_in_flight_while_the_webhook_is_disabled_is_stored(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client
) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    receiver.hold()
    with stepwise(hub) as steps:
        assert len(steps.start()) == 1
        ada.post(f"/api/settings/webhooks/{webhook['id']}/disable")
        assert [(log["state"], log["reason"]) for log in logs(ada, webhook)] == [("skipped", "disabled")]
        receiver.release(1)
        steps.wait_for_results(1)
        steps.store()
    (log,) = logs(ada, webhook)
    assert (log["state"], log.get("reason"), log["attempts"]) == ("delivered", None, 1)


def test_webhook_deleted_while_a_delivery_is_in_flight(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    kept = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    receiver.hold()
    with stepwise(hub) as steps:
        assert len(steps.start()) == 2
        assert ada.delete(f"/api/settings/webhooks/{webhook['id']}").status_code == 200
        receiver.release(2)
        steps.wait_for_results(2)
        steps.store()
    receiver.stop_holding()
    assert settle(hub) == 0
    assert [log["state"] for log in logs(ada, kept)] == ["delivered"], "the others of the same unit are stored"
    assert hub.call(lambda opened: opened.db.one("SELECT 1 FROM attempts")) is None
    left = hub.call(lambda opened: opened.db.few("SELECT webhook_id, first_at IS NOT NULL AS is_tried FROM deliveries"))
    assert {row["webhook_id"] for row in left if row["is_tried"]} == {kept["id"]}


def test_old_deliveries_and_their_events_are_deleted(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "done")
    settle(hub)
    receiver.status = 500
    create_repo(ada, "failing")
    settle(hub)
    create_repo(ada, "unfanned")
    hub.clock.advance(30 * 24 * 3600 + 1)
    within(hub, lambda webhooks: Retention(webhooks, 30).step())
    assert [log["repo"]["name"] for log in logs(ada, webhook)] == ["ada/failing"]
    count = hub.call(lambda opened: opened.db.one("SELECT count(*) FROM events"))
    assert count is not None
    assert count[0] == 2, "one that a delivery needs, one that is not fanned out yet"
    receiver.status, receiver.received[:] = 200, []
    settle(hub)
    assert sorted(one.json["repo"]["name"] for one in receiver.received) == ["ada/failing", "ada/unfanned"]


def test_clock_set_back_loses_no_event(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "before")
    receiver.hold()
    with stepwise(hub) as steps:
        assert len(steps.start()) == 1
        create_commit(ada, "ada/before", {"a.txt": b"one"})
        steps.start()
        hub.clock.advance(-3000)
        create_repo(ada, "after")
        steps.start()
        assert len(steps.in_flight) == 2
        until(lambda: len(receiver.received) == 2)
    # The process died. What it left is due in an hour by the new time.
    receiver.stop_holding()
    receiver.received.clear()
    hub.clock.advance(7)
    settle(hub)
    sent = sorted((one.json["repo"]["name"], one.kind) for one in receiver.received)
    assert sent == [
        ("ada/after", "repo create"),
        ("ada/before", "repo create"),
        ("ada/before", "repo.content update"),
    ]


def test_disabled_webhook_uses_no_quota(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    path = f"/api/settings/webhooks/{webhook['id']}"
    ada.post(f"{path}/disable")
    create_repo(ada, "tiny")
    for number in range(30):
        ada.put("/api/models/ada/tiny/settings", json={"discussionsDisabled": not number % 2})
    settle(hub)
    ada.post(f"{path}/enable")
    for number in range(31):
        ada.put("/api/models/ada/tiny/settings", json={"discussionsDisabled": not number % 2})
    settle(hub)
    assert len(receiver.received) == 30
    assert [log["seq"] if "seq" in log else log["state"] for log in logs(ada, webhook)][:2] == ["skipped", "delivered"]


def test_new_url_starts_without_failures(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    """Neither the open breaker of the old URL nor its days of failure apply to it."""
    with run_receiver() as old:
        old.status = 500
        webhook = create_webhook(ada, old.url, "user:ada")
        for number in range(BREAKER_OPENS_AFTER):
            create_repo(ada, f"tiny{number}")
        assert settle(hub) == BREAKER_OPENS_AFTER
    hub.clock.advance(6)
    assert settle(hub) == 0, "the breaker is open"
    path = f"/api/settings/webhooks/{webhook['id']}"
    assert ada.post(path, json={"domains": ["repo"]}).status_code == 200
    assert settle(hub) == 0
    assert ada.post(path, json={"url": receiver.url}).status_code == 200
    assert settle(hub) == BREAKER_OPENS_AFTER
    assert {log["state"] for log in logs(ada, webhook)} == {"delivered"}


async def deliverer_with_a_failure(opened: Hub) -> tuple[Deliverer, "asyncio.Task[None]"]:
    """A running deliverer with a request that has failed and is reported in ten minutes, as those of private addresses
    are at their deadline (attack W18).
    """
    deliverer = Deliverer(patient(opened), asyncio.Event())
    running, sender = asyncio.create_task(deliverer.run()), deliverer.dispatch.sender
    while not sender.in_flight or sender.awaited:
        await FanOut(deliverer.webhooks, deliverer).step()
        await asyncio.sleep(0.001)
    return deliverer, running


def patient(opened: Hub) -> Webhooks:
    pace = replace(opened.webhooks.pace, deadline_seconds=600.0, dead_after_seconds=3600.0, finish_seconds=600.0)
    return replace(opened.webhooks, pace=pace)


@pytest.fixture
def refused(ada: httpx.Client) -> Iterator[dict[str, Any]]:
    """A webhook whose receiver refuses connections, with an event. It is in the half of the shards that a process
    releases when another one starts.
    """
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        webhook = create_webhook(ada, url, "user:ada")
        while shard_of(webhook["id"]) < SHARDS // 2:
            ada.delete(f"/api/settings/webhooks/{webhook['id']}")
            webhook = create_webhook(ada, url, "user:ada")
        create_repo(ada, "tiny")
        yield webhook


def test_stop_does_not_wait_for_failures_that_are_reported_later(
    hub: RunningHub, ada: httpx.Client, refused: dict[str, Any]
) -> None:
    async def stop_after_failure(opened: Hub) -> None:
        deliverer, running = await deliverer_with_a_failure(opened)
        deliverer.stop.set()
        await asyncio.wait_for(running, 60)

    hub.call(stop_after_failure)
    assert [(log["state"], log["attempts"]) for log in logs(ada, refused)] == [("pending", 0)], "as before the request"


@pytest.mark.usefixtures("refused")
def test_another_process_does_not_wait_for_failures_that_are_reported_later(hub: RunningHub) -> None:
    async def join_after_failure(opened: Hub) -> None:
        first, first_running = await deliverer_with_a_failure(opened)
        second = Deliverer(patient(opened), asyncio.Event())
        second_running = asyncio.create_task(second.run())
        async with asyncio.timeout(60):
            while len(second.shards) < SHARDS // 2:
                await asyncio.sleep(0.01)
        for deliverer, running in ((first, first_running), (second, second_running)):
            deliverer.stop.set()
            await asyncio.wait_for(running, 60)

    hub.call(join_after_failure)
