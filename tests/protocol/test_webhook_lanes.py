"""One busy repo does not delay others, and a clock that was wrong for a while has no lasting effect."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, create_token, create_user
from tests.bed.processes import until
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.stepwise_delivery import stepwise
from tests.bed.webhooks import Receiver, create_webhook, settle
from tests.protocol.test_webhook_backlogs import copy_delivery

from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.fanout.fanning import FanOut

DAY = 24 * 3600
LOGS = "/api/settings/webhooks/{}/logs"


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    settings = settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8", webhook_quota="3")
    with run_hub(settings) as started:
        yield started


@pytest.fixture
def ada(hub: RunningHub) -> Iterator[httpx.Client]:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        yield client


async def fanned(webhooks: Webhooks) -> None:
    while await FanOut(webhooks).step():
        pass


@pytest.mark.parametrize("ordered", [False, True], ids=["unordered", "ordered"])
def test_backlog_of_one_repo_does_not_delay_others(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client, ordered: bool
) -> None:
    create_webhook(ada, receiver.url, "user:ada", ordered=ordered)
    create_repo(ada, "busy")
    hub.call(lambda opened: fanned(opened.webhooks))
    copy_delivery(hub, 500)
    hub.clock.advance(1)
    create_repo(ada, "calm")
    receiver.hold()
    with stepwise(hub) as steps:
        assert sorted(one.repo_seq for one in steps.start()) == [1, 1], "the first of each repo"
        # It is known only as far as the window reaches. What comes now is neither forgotten nor sent before the rest.
        create_repo(ada, "new")
        assert len(steps.start()) == 3


@pytest.mark.parametrize("ordered", [False, True], ids=["unordered", "ordered"])
def test_backlog_delays_neither_retries_nor_tests(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client, ordered: bool
) -> None:
    """They do not wait for a lane, so a backlog must not hide them."""
    webhook = create_webhook(ada, receiver.url, "user:ada", ordered=ordered)
    create_repo(ada, "busy")
    hub.call(lambda opened: fanned(opened.webhooks))
    copy_delivery(hub, 500)
    hub.clock.advance(1)
    create_repo(ada, "calm")
    receiver.status = 503
    receiver.hold()
    with stepwise(hub) as steps, ThreadPoolExecutor(1) as pool:
        failing = {one.id for one in steps.start()}
        assert len(failing) == 2
        until(lambda: len(receiver.received) == 2)
        receiver.release(2)
        steps.wait_for_results(2)
        steps.store()
        if ordered:
            assert steps.in_flight == [], "the deliveries behind it were due before its retry is"
        else:
            assert [one.attempts for one in steps.in_flight] == [0]
        hub.clock.advance(7)
        again = {one.id for one in steps.start() if one.attempts}
        assert again == failing
        asked = pool.submit(ada.post, f"/api/settings/webhooks/{webhook['id']}/test")
        until(lambda: any(one.is_test for one in steps.start()))
        receiver.status = 200
        receiver.release(len(steps.in_flight))
        until(lambda: steps.store() or asked.done())
        assert asked.result().json()["status"] == 200


def test_window_that_began_in_the_future_ends(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    hub.clock.advance(30 * DAY)
    create_repo(ada, "ahead")
    settle(hub)
    hub.clock.advance(-30 * DAY)
    for number in range(3):
        create_repo(ada, f"today{number}")
    settle(hub)
    hub.clock.advance(DAY + 1)
    create_repo(ada, "tomorrow")
    settle(hub)
    (log,) = [log for log in ada.get(LOGS.format(webhook["id"])).json() if log["repo"]["name"] == "ada/tomorrow"]
    assert (log["state"], log.get("reason")) == ("delivered", None)


def test_webhook_created_in_the_future_receives_events(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    hub.clock.advance(2 * DAY)
    create_webhook(ada, receiver.url, "user:ada")
    hub.clock.advance(-2 * DAY)
    create_repo(ada, "tiny")
    settle(hub)
    assert receiver.kinds == ["repo create"]
