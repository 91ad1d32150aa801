"""Deliveries of a process that dies, is taken over or stops, with a controlled clock."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, create_token, create_user
from tests.bed.processes import until
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.stepwise_delivery import stepwise, take_over
from tests.bed.webhooks import LOGS, Receiver, create_webhook, logs, settle

from hubgate.server.webhooks.delivering.deliverer import Deliverer
from hubgate.server.webhooks.delivering.queue import MAX_PER_HOST
from hubgate.server.webhooks.shards.ownership import TakenOver


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    settings = settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8", webhook_quota="30")
    with run_hub(settings) as started:
        yield started


@pytest.fixture
def ada(hub: RunningHub) -> Iterator[httpx.Client]:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        yield client


def test_attempt_lost_with_its_process_is_not_counted(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    receiver.hold()
    for deaths in range(1, 16):
        with stepwise(hub) as steps:
            assert len(steps.start()) == 1, "the next owner sends it at once"
            until(lambda deaths=deaths: len(receiver.received) == deaths)
            take_over(hub)
    (log,) = logs(ada, webhook)
    assert (log["state"], log["attempts"]) == ("pending", 0)
    receiver.stop_holding()
    assert settle(hub) == 1
    assert {one.headers["x-hubgate-attempt"] for one in receiver.received} == {"1"}
    assert len({(one.headers["webhook-id"], one.body) for one in receiver.received}) == 1
    full = ada.get(f"{LOGS.format(webhook['id'])}/{log['id']}").json()
    assert (full["state"], full["attempts"], len(full["tries"])) == ("delivered", 1, 1)


def test_process_that_was_taken_over_stores_nothing(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    """It was frozen until now: it neither stores results nor adds deliveries."""
    receiver.status = 410
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    with stepwise(hub) as steps:
        steps.start()
        steps.wait_for_results(1)
        take_over(hub)
        with pytest.raises(TakenOver):
            steps.store()
        create_repo(ada, "next")
        with pytest.raises(TakenOver):
            steps.start()
        (log,) = logs(ada, webhook)
        assert (log["state"], log["attempts"]) == ("pending", 0)
        assert ada.get(f"/api/settings/webhooks/{webhook['id']}").json()["webhook"]["disabled"] is False
        receiver.status = 200
        assert settle(hub) == 2
        with pytest.raises(TakenOver):
            steps.store()
    assert [log["state"] for log in logs(ada, webhook)] == ["delivered"] * 2


def test_aborted_request_does_not_count_as_an_attempt(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    """A stopping process aborts requests that have no response after a while."""
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    receiver.hold()
    with stepwise(hub) as steps:
        assert len(steps.start()) == 1

        async def abort(deliverer: Deliverer) -> None:
            deliverer.dispatch.sender.abort()

        until(lambda: len(receiver.received) == 1)
        steps.call(abort)
        assert steps.unstored == 0
        assert steps.start() == []
        hub.clock.advance(4)
        receiver.stop_holding()
        steps.run()
    assert [one.headers["x-hubgate-attempt"] for one in receiver.received] == ["1", "1"]
    assert logs(ada, webhook)[0]["attempts"] == 1


def test_deliveries_of_a_dead_process_are_skipped_for_a_disabled_webhook(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client
) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    path = f"/api/settings/webhooks/{webhook['id']}"
    create_repo(ada, "tiny")
    receiver.hold()
    with stepwise(hub) as steps:
        assert len(steps.start()) == 1
        ada.post(f"{path}/disable")
        take_over(hub)
    (log,) = logs(ada, webhook)
    assert (log["state"], log.get("reason"), log["nextAttemptAt"]) == ("skipped", "disabled", None)
    receiver.stop_holding()
    ada.post(f"{path}/enable")
    hub.clock.advance(3600)
    assert settle(hub) == 0


def test_everything_that_a_dead_process_had_in_flight_is_sent_again(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client
) -> None:
    for _ in range(40):
        create_webhook(ada, receiver.url, "user:ada")
    for number in range(8):
        create_repo(ada, f"tiny{number}")
    receiver.hold()
    with stepwise(hub) as steps:
        assert len(steps.start()) == MAX_PER_HOST, "to one host"
        until(lambda: len(receiver.received) == MAX_PER_HOST)
        take_over(hub)
    receiver.stop_holding()
    receiver.received.clear()
    assert settle(hub) == 320
    assert len({one.headers["webhook-id"] for one in receiver.received}) == 320
    assert {one.headers["x-hubgate-attempt"] for one in receiver.received} == {"1"}
