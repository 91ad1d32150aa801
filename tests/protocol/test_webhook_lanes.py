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
from tests.bed.webhooks import Receiver, create_webhook, settle
from tests.protocol.test_webhook_backlogs import copy_delivery

from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering.claiming import Claim, claim
from hubgate.server.webhooks.delivering.noting import note
from hubgate.server.webhooks.requests.sending import Sender
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


def claimed(hub: RunningHub) -> list[Claim]:
    hub.call(lambda opened: fanned(opened.webhooks))
    return hub.call(lambda opened: claim(opened.webhooks, 64))


def send(hub: RunningHub, one: Claim) -> None:
    result = hub.call(lambda opened: Sender(opened.webhooks, silence_seconds=0).send(one))
    hub.call(lambda opened: note(opened.webhooks, [result]))


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
    assert len(claimed(hub)) == 2, "the first of each repo"


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
    busy, calm = claimed(hub)
    send(hub, calm)
    if ordered:
        # The deliveries behind it were due before its retry is.
        send(hub, busy)
    assert claimed(hub) == [] or not ordered
    hub.clock.advance(6)
    again = [one for one in claimed(hub) if one.row["attempts"]]
    assert {one.delivery_id for one in again} == {one.delivery_id for one in ((busy, calm) if ordered else (calm,))}
    receiver.status = 200
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ada.post, f"/api/settings/webhooks/{webhook['id']}/test")
        tests: list[Claim] = []
        until(lambda: tests.extend(one for one in claimed(hub) if one.row["is_test"]) or tests)
        send(hub, tests[0])
        assert answer.result().json()["status"] == 200


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
