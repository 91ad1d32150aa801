"""The delivery engine step by step, with a controlled clock: leases, circuit breaker, lanes, limits, retention."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from msgspec.structs import replace
from tests.bed.background_delivery import deliver_in_background
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, browser_of, create_token, create_user, submit
from tests.bed.processes import until
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, run_receiver, settle

from hubgate.server.accounts.model import User
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering.claiming import Claim, claim
from hubgate.server.webhooks.delivering.losing import INTERRUPTED, release_lost
from hubgate.server.webhooks.delivering.noting import note
from hubgate.server.webhooks.requests.sending import FRESH_SECONDS, Sender, Tried, Unsent
from hubgate.server.webhooks.fanout.fanning import FanOut
from hubgate.server.webhooks.retention.deletion import Retention

T = TypeVar("T")
LOGS = "/api/settings/webhooks/{}/logs"


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    settings = settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8", webhook_quota="30")
    with run_hub(settings) as started:
        yield started


@pytest.fixture
def user(hub: RunningHub) -> User:
    return create_user(hub, "ada")


@pytest.fixture
def ada(hub: RunningHub, user: User) -> Iterator[httpx.Client]:
    with api(hub, create_token(hub, user)) as client:
        yield client


@pytest.fixture
def browser(hub: RunningHub, user: User) -> Iterator[httpx.Client]:
    with browser_of(hub, user) as client:
        yield client


def within(hub: RunningHub, work: Callable[[Webhooks], Awaitable[T]]) -> T:
    return hub.call(lambda opened: work(opened.webhooks))


def claimed(hub: RunningHub, times: int = 1) -> list[Claim]:
    """Claimed by that many processes concurrently."""

    async def work(webhooks: Webhooks) -> list[Claim]:
        while await FanOut(webhooks).step():
            pass
        return [one for found in await asyncio.gather(*(claim(webhooks, 64) for _ in range(times))) for one in found]

    return within(hub, work)


def send(hub: RunningHub, one: Claim) -> Tried | Unsent:
    return within(hub, lambda webhooks: Sender(webhooks, silence_seconds=0).send(one))


def logs(ada: httpx.Client, webhook: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ada.get(LOGS.format(webhook["id"])).json()
    return found


def test_lost_lease_is_a_failed_attempt_and_not_the_last(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client
) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    (one,) = claimed(hub)
    late = send(hub, one)
    hub.clock.advance(31)
    assert within(hub, release_lost) == 1
    # The process was frozen until now: it neither starts to send nor records a result.
    assert isinstance(send(hub, replace(one, taken=time.monotonic())), Unsent)
    within(hub, lambda webhooks: note(webhooks, [late]))
    assert len(receiver.received) == 1
    (log,) = logs(ada, webhook)
    assert (log["state"], log["attempts"]) == ("retrying", 1)
    assert settle(hub) == 0, "it waits as after a failure"
    for _ in range(14):
        hub.clock.advance(30 * 3600)
        assert len(claimed(hub)) == 1
        hub.clock.advance(31)
        assert within(hub, release_lost) == 1
    hub.clock.advance(30 * 3600)
    assert settle(hub) == 1
    (log,) = logs(ada, webhook)
    full = ada.get(f"{LOGS.format(webhook['id'])}/{log['id']}").json()
    assert (full["state"], full["attempts"]) == ("delivered", 16)
    assert [each["error"] for each in full["tries"]][:15] == [INTERRUPTED] * 15
    assert receiver.received[1].headers["x-hubgate-attempt"] == "16"


def test_breaker_lets_one_delivery_through(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    receiver.status = 500
    webhook = create_webhook(ada, receiver.url, "user:ada")
    for number in range(20):
        create_repo(ada, f"tiny{number}")
    assert settle(hub) == 16, "eight, and eight more, among which is the tenth that opens it"
    hub.clock.advance(9.9)
    assert settle(hub) == 0
    assert {log["state"] for log in logs(ada, webhook)} == {"parked"}
    parked = ada.get(LOGS.format(webhook["id"]), params={"state": "parked", "limit": 5}).json()
    assert len(parked) == 5
    # The first attempt was at :20, and ten seconds later one may be sent.
    assert {log["nextAttemptAt"] for log in logs(ada, webhook)} == {"2026-09-21T14:13:30.000Z"}
    assert ada.get(LOGS.format(webhook["id"]), params={"state": "retrying"}).json() == []
    hub.clock.advance(0.2)
    (probe,) = claimed(hub, times=4)
    within(hub, lambda webhooks: _sent_and_noted(webhooks, probe))
    for closed_for in (20, 40):
        hub.clock.advance(closed_for - 0.1)
        assert settle(hub) == 0, "twice as long"
        hub.clock.advance(0.2)
        assert settle(hub) == 1
    receiver.status = 200
    hub.clock.advance(80)
    assert settle(hub) == 20, "one success closes it"
    assert {log["state"] for log in logs(ada, webhook)} == {"delivered"}


def test_410_of_the_old_url_does_not_suspend_the_new_one(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client, browser: httpx.Client
) -> None:
    receiver.status = 410
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    (one,) = claimed(hub)
    gone = send(hub, one)
    moved = {"url": f"{receiver.url}/new", "watched": webhook["watched"], "domains": webhook["domains"]}
    assert ada.post(f"/api/settings/webhooks/{webhook['id']}", json=moved).status_code == 200
    within(hub, lambda webhooks: note(webhooks, [gone]))
    assert ada.get(f"/api/settings/webhooks/{webhook['id']}").json()["webhook"]["disabled"] is False
    assert "No success since" not in browser.get(f"/settings/webhooks/{webhook['id']}").text
    receiver.status = 200
    assert settle(hub) == 1, "the new one gets what the old one did not take"
    assert [log["state"] for log in logs(ada, webhook)] == ["delivered"]


def test_test_delivery_does_not_wait_for_the_breaker(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    """An owner who fixed the receiver checks it with a test."""
    receiver.status = 500
    webhook = create_webhook(ada, receiver.url, "user:ada")
    for number in range(20):
        create_repo(ada, f"tiny{number}")
    assert settle(hub) == 16
    hub.clock.advance(6)
    test = f"/api/settings/webhooks/{webhook['id']}/test"
    with deliver_in_background(hub):
        assert ada.post(test).json()["status"] == 500
    settle(hub)
    assert [one.headers.get("x-hubgate-test") for one in receiver.received[16:]] == ["1", None], "itself, then a probe"
    assert {log["nextAttemptAt"] for log in logs(ada, webhook)} == {"2026-09-21T14:13:46.000Z"}, "and a longer pause"
    receiver.status = 200
    with deliver_in_background(hub):
        assert ada.post(test).json()["status"] == 200
    hub.clock.advance(6)
    settle(hub)
    assert {log["state"] for log in logs(ada, webhook) if log["id"] != log["event"]["id"]} == {"delivered"}


def test_result_of_an_earlier_attempt_does_not_reopen_the_breaker(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client
) -> None:
    """It was sent before the pause began, so it does not extend one that a test has ended."""
    receiver.status = 500
    webhook = create_webhook(ada, receiver.url, "user:ada")
    for number in range(20):
        create_repo(ada, f"tiny{number}")
    first, second = claimed(hub), claimed(hub)
    assert (len(first), second) == (8, [])
    for one in first[:6]:
        within(hub, lambda webhooks, one=one: _sent_and_noted(webhooks, one))  # type: ignore[misc]
    second = claimed(hub)
    assert len(second) == 6
    hub.clock.advance(1)
    for one in second[:4]:
        within(hub, lambda webhooks, one=one: _sent_and_noted(webhooks, one))  # type: ignore[misc]
    hub.clock.advance(2)
    assert claimed(hub) == [], "the tenth opened it"
    receiver.status = 200
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ada.post, f"/api/settings/webhooks/{webhook['id']}/test")
        until(lambda: any(log["attempts"] == 0 and log["id"] == log["event"]["id"] for log in logs(ada, webhook)))
        hub.clock.advance(1)
        receiver.status = 500
        for one in (*first[6:], *second[4:]):
            within(hub, lambda webhooks, one=one: _sent_and_noted(webhooks, one))  # type: ignore[misc]
        receiver.status = 200
        (test,) = claimed(hub)
        within(hub, lambda webhooks: _sent_and_noted(webhooks, test))
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
    first, second = claimed(hub)
    arrived = send(hub, first)
    receiver.status = 410
    gone = send(hub, second)
    for results in [[gone, arrived]] if together else [[gone], [arrived]]:
        within(hub, lambda webhooks, results=results: note(webhooks, results))
    assert "the receiver answered 410" in browser.get(f"/settings/webhooks/{webhook['id']}").text


def test_days_without_an_attempt_do_not_count_as_failure(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client, browser: httpx.Client
) -> None:
    receiver.status = 500
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    settle(hub)
    while logs(ada, webhook)[0]["state"] != "failed":
        hub.clock.advance(3600)
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


async def _sent_and_noted(webhooks: Webhooks, one: Claim) -> None:
    await note(webhooks, [await Sender(webhooks, silence_seconds=0).send(one)])


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
    assert [one.row["repo_seq"] for one in claimed(hub, times=3)] == [1], "not before the first try has ended"
    hub.clock.advance(31)
    assert within(hub, release_lost) == 1
    assert settle(hub) == 1
    assert receiver.kinds == ["repo.content update"]


def test_at_most_eight_deliveries_of_a_webhook_are_in_flight(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client
) -> None:
    create_webhook(ada, receiver.url, "user:ada")
    for number in range(12):
        create_repo(ada, f"tiny{number}")
    assert len(claimed(hub, times=4)) == 8
    assert claimed(hub, times=2) == []


def test_webhook_disabled_while_a_delivery_is_in_flight(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    receiver.status = 500
    webhook = create_webhook(ada, receiver.url, "user:ada")
    for number in range(3):
        create_repo(ada, f"tiny{number}")
    sent, unsent, _ = claimed(hub)
    result = send(hub, sent)
    ada.post(f"/api/settings/webhooks/{webhook['id']}/disable")
    until(lambda: time.monotonic() > unsent.taken + FRESH_SECONDS)
    given_back = send(hub, unsent)
    assert isinstance(given_back, Unsent)
    assert len(receiver.received) == 1
    within(hub, lambda webhooks: note(webhooks, [result, given_back]))
    hub.clock.advance(31)
    settle(hub)
    assert [(log["state"], log["reason"]) for log in logs(ada, webhook)[1:]] == [("skipped", "disabled")] * 2
    assert len(receiver.received) == 1


def test_webhook_deleted_while_a_delivery_is_in_flight(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    (one,) = claimed(hub)
    result = send(hub, one)
    assert ada.delete(f"/api/settings/webhooks/{webhook['id']}").status_code == 200
    within(hub, lambda webhooks: note(webhooks, [result]))
    assert settle(hub) == 0
    assert hub.call(lambda opened: opened.db.one("SELECT 1 FROM attempts")) is None


def test_released_delivery_does_not_count_as_an_attempt(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    (one,) = claimed(hub)
    within(hub, lambda webhooks: note(webhooks, [Unsent(one, webhooks.clock())]))
    assert settle(hub) == 1
    assert receiver.received[0].headers["x-hubgate-attempt"] == "1"
    assert logs(ada, webhook)[0]["attempts"] == 1


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
    (lost,) = claimed(hub)
    hub.clock.advance(-3000)
    assert not lost.until <= hub.clock()
    create_repo(ada, "after")
    # The lease of a process that died would last for an hour.
    assert within(hub, release_lost) == 1
    hub.clock.advance(7)
    settle(hub)
    assert sorted(one.json["repo"]["name"] for one in receiver.received) == ["ada/after", "ada/before"]


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


def test_leases_of_a_dead_worker_are_released_for_a_disabled_webhook(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client
) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    path = f"/api/settings/webhooks/{webhook['id']}"
    create_repo(ada, "tiny")
    assert len(claimed(hub)) == 1
    ada.post(f"{path}/disable")
    hub.clock.advance(31)
    assert within(hub, release_lost) == 1
    (log,) = logs(ada, webhook)
    assert (log["state"], log.get("reason"), log["nextAttemptAt"]) == ("skipped", "disabled", None)
    ada.post(f"{path}/enable")
    hub.clock.advance(3600)
    assert settle(hub) == 0


def test_new_url_starts_without_failures(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    """Neither the open breaker of the old URL nor its days of failure apply to it."""
    with run_receiver() as old:
        old.status = 500
        webhook = create_webhook(ada, old.url, "user:ada")
        for number in range(12):
            create_repo(ada, f"tiny{number}")
        assert settle(hub) == 12
    hub.clock.advance(6)
    assert settle(hub) == 0, "the breaker is open"
    path = f"/api/settings/webhooks/{webhook['id']}"
    assert ada.post(path, json={"domains": ["repo"]}).status_code == 200
    assert settle(hub) == 0
    assert ada.post(path, json={"url": receiver.url}).status_code == 200
    assert settle(hub) == 12
    assert {log["state"] for log in logs(ada, webhook)} == {"delivered"}


def test_all_leases_of_a_dead_worker_are_released_together(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client
) -> None:
    for _ in range(40):
        create_webhook(ada, receiver.url, "user:ada")
    for number in range(8):
        create_repo(ada, f"tiny{number}")
    assert len(claimed(hub)) == 320
    hub.clock.advance(31)
    assert within(hub, release_lost) == 320
