"""W35: a receiver that answers with Retry-After, or with 410."""

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from email.utils import formatdate
from pathlib import Path

import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, run_receiver, settle

PATH = "/api/settings/webhooks"
DAY = timedelta(days=1)


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        yield started


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def http_date(hub: RunningHub, seconds: int) -> str:
    return formatdate(hub.clock() / 1_000_000 + seconds, usegmt=True)


def test_w35_retry_after_is_limited_to_a_day(hub: RunningHub, receiver: Receiver) -> None:
    receiver.status = 503
    least, limit = timedelta(seconds=4), timedelta(seconds=6.1)
    waits = {
        "1000000000": (DAY, DAY),
        "99999999999999999999": (DAY, DAY),
        "3600": (timedelta(hours=1), timedelta(hours=1)),
        "86401": (DAY, DAY),
        "0": (least, limit),
        "-5": (least, limit),
        "1e9": (least, limit),
        "soon": (least, limit),
        "٣٦٠٠": (least, limit),
        "9" * 2000: (least, DAY),
        "Wed, 21 Oct 2015 07:28:00 GMT": (least, limit),
        "Fri, 31 Dec 9999 23:59:59 GMT": (DAY, DAY),
        http_date(hub, 1800): (timedelta(minutes=30), timedelta(minutes=30)),
        http_date(hub, 90_000): (DAY, DAY),
        "Fri, 31 Dec 2999 99:99:99 GMT": (least, limit),
        "Fri, 31 Dec 99999999 23:59:59 GMT": (least, DAY),
    }
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        for number, (said, (shortest, longest)) in enumerate(waits.items()):
            webhook = create_webhook(ada, receiver.url, "user:ada")
            receiver.answer_headers = {"Retry-After": said.encode().decode("latin-1")}
            create_repo(ada, f"r{number}")
            settle(hub)
            log = ada.get(f"{PATH}/{webhook['id']}/logs").json()[0]
            wait = moment(log["nextAttemptAt"]) - moment(log["at"])
            assert shortest - timedelta(seconds=1) <= wait <= longest + timedelta(seconds=1), (said[:30], wait)
            ada.delete(f"{PATH}/{webhook['id']}")


def test_w35_retry_after_delays_no_other_delivery(hub: RunningHub, receiver: Receiver) -> None:
    """Neither the repo's next event nor another webhook at the same host."""
    receiver.status, receiver.answer_headers = 429, {"Retry-After": "86400"}
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        one = create_webhook(ada, receiver.url, "user:ada")
        create_repo(ada, "first")
        settle(hub)
        receiver.status = 200
        create_webhook(ada, receiver.url, "user:ada")
        create_repo(ada, "second")
        settle(hub)
        states = [log["state"] for log in ada.get(f"{PATH}/{one['id']}/logs").json()]
        assert states == ["delivered", "retrying"]
        assert len(receiver.received) == 3


def test_w35_410_suspends_only_the_webhook_that_received_it(hub: RunningHub, receiver: Receiver) -> None:
    receiver.status = 410
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada, run_receiver() as elsewhere:
        gone, other = create_webhook(ada, receiver.url, "user:ada"), create_webhook(ada, elsewhere.url, "user:ada")
        create_repo(ada, "tiny")
        settle(hub)
        found = {one["id"]: one for one in ada.get(PATH).json()}
        assert (found[gone["id"]]["status"], found[gone["id"]]["disabled"]) == (
            "disabled",
            "suspended-after-failure",
        )
        assert found[other["id"]]["disabled"] is False
        create_repo(ada, "next")
        settle(hub)
        assert (len(receiver.received), len(elsewhere.received)) == (1, 2)
        first = ada.get(f"{PATH}/{gone['id']}/logs").json()[0]
        assert (first["state"], first["reason"]) == ("skipped", "suspended")


@pytest.fixture
def far_from_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "EST5")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("far_from_utc")
def test_w35_date_without_a_zone_is_in_utc(hub: RunningHub, receiver: Receiver) -> None:
    receiver.status = 503
    receiver.answer_headers = {"retry-after": time.asctime(time.gmtime(hub.clock() / 1_000_000 + 1800))}
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        webhook = create_webhook(ada, receiver.url, "user:ada")
        create_repo(ada, "tiny")
        settle(hub)
        (logged,) = ada.get(f"{PATH}/{webhook['id']}/logs").json()
        assert moment(logged["nextAttemptAt"]) - moment(logged["at"]) == timedelta(minutes=30)
