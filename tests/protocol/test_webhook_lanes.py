"""One busy repo keeps no other waiting, and a clock that was wrong for a while spoils nothing."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, make_token, make_user
from tests.bed.repos import make_repo
from tests.bed.running import RunningHub, running
from tests.bed.watching import Receiver, make_webhook, settle
from tests.protocol.test_webhook_backlogs import copy_delivery

from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering.claiming import Claim, claim
from hubgate.server.webhooks.fanout.fanning import FanOut

DAY = 24 * 3600
LOGS = "/api/settings/webhooks/{}/logs"


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    settings = settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8", webhook_quota="3")
    with running(settings) as started:
        yield started


@pytest.fixture
def ada(hub: RunningHub) -> Iterator[httpx.Client]:
    with api(hub, make_token(hub, make_user(hub, "ada"))) as client:
        yield client


async def fanned(webhooks: Webhooks) -> None:
    while await FanOut(webhooks).step():
        pass


@pytest.mark.parametrize("ordered", [False, True], ids=["unordered", "ordered"])
def test_the_backlog_of_one_repo_keeps_no_other_waiting(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client, ordered: bool
) -> None:
    make_webhook(ada, receiver.url, "user:ada", ordered=ordered)
    make_repo(ada, "busy")
    hub.call(lambda opened: fanned(opened.webhooks))
    copy_delivery(hub, 500)
    hub.clock.advance(1)
    make_repo(ada, "calm")
    hub.call(lambda opened: fanned(opened.webhooks))
    claims: list[Claim] = hub.call(lambda opened: claim(opened.webhooks, 64))
    assert len(claims) == 2, "the first of each repo"


def test_a_window_that_began_in_the_future_ends(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    webhook = make_webhook(ada, receiver.url, "user:ada")
    hub.clock.advance(30 * DAY)
    make_repo(ada, "ahead")
    settle(hub)
    hub.clock.advance(-30 * DAY)
    for number in range(3):
        make_repo(ada, f"today{number}")
    settle(hub)
    hub.clock.advance(DAY + 1)
    make_repo(ada, "tomorrow")
    settle(hub)
    (log,) = [log for log in ada.get(LOGS.format(webhook["id"])).json() if log["repo"]["name"] == "ada/tomorrow"]
    assert (log["state"], log.get("reason")) == ("delivered", None)


def test_a_webhook_that_was_made_in_the_future_is_told(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    hub.clock.advance(2 * DAY)
    make_webhook(ada, receiver.url, "user:ada")
    hub.clock.advance(-2 * DAY)
    make_repo(ada, "tiny")
    settle(hub)
    assert receiver.kinds == ["repo create"]
