"""Replays of many deliveries over the API: selection, progress, rate, cancellation."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.replays import run_replays
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.stepwise_delivery import stepwise
from tests.bed.webhooks import Receiver, create_webhook, logs, run_receiver, settle

from hubgate.server.clock import SECOND

PATH = "/api/settings/webhooks"
NOBODY = "0" * 24
FIRST = "2000-01-01T00:00:00Z"


@pytest.fixture
def hub(engine: Engine, tmp_path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


@pytest.fixture
def ada(hub: RunningHub) -> Iterator[httpx.Client]:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        yield client


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        yield started


def moment(hub: RunningHub) -> str:
    return datetime.fromtimestamp(hub.clock() / SECOND, UTC).isoformat()


def missed_events(hub: RunningHub, ada: httpx.Client, url: str, count: int = 3, **more: Any) -> dict[str, Any]:
    """A webhook that was disabled while repos were created."""
    webhook = create_webhook(ada, url, "user:ada", **more)
    ada.post(f"{PATH}/{webhook['id']}/disable")
    for number in range(count):
        create_repo(ada, f"missed-{number}")
    settle(hub)
    ada.post(f"{PATH}/{webhook['id']}/enable")
    return webhook


def names(receiver: Receiver) -> set[str]:
    """The names of the repos in the received deliveries, all of which are distinct."""
    found = [one.json["repo"]["name"] for one in receiver.received]
    assert len(set(found)) == len(found)
    return set(found)


def started(client: httpx.Client, webhook: dict[str, Any], **body: Any) -> dict[str, Any]:
    answer = client.post(f"{PATH}/{webhook['id']}/replays", json={"rate": 200, **body})
    assert answer.status_code == 202, answer.text
    replay: dict[str, Any] = answer.json()
    return replay


def test_skipped_deliveries_are_replayed(hub: RunningHub, ada: httpx.Client, receiver: Receiver) -> None:
    webhook = missed_events(hub, ada, receiver.url, secret="old")
    at = f"{PATH}/{webhook['id']}"
    skipped = logs(ada, webhook)
    assert {entry["state"] for entry in skipped} == {"skipped"}
    ada.post(at, json={"secret": "new"})
    replay = started(ada, webhook, since=FIRST)
    assert replay == {"id": replay["id"], "total": 3, "done": 0, "state": "running"}
    assert ada.get(f"{at}/replays/{replay['id']}").json() == replay
    assert receiver.received == []
    run_replays(hub)
    done = {**replay, "done": 3, "state": "done"}
    assert ada.get(f"{at}/replays/{replay['id']}").json() == done
    assert ada.get(f"{at}/replays").json() == [done]
    assert names(receiver) == {entry["repo"]["name"] for entry in skipped}
    assert {one.headers["x-webhook-secret"] for one in receiver.received} == {"new"}
    copies = [entry for entry in logs(ada, webhook) if entry["replayOf"]]
    assert [entry["state"] for entry in copies] == ["delivered"] * 3
    assert [entry["replayOf"] for entry in copies] == [entry["id"] for entry in skipped]
    assert {one.headers["webhook-id"] for one in receiver.received} == {entry["id"] for entry in copies}
    # They are not missing any more.
    assert started(ada, webhook, since=FIRST) | {"id": ""} == {"id": "", "total": 0, "done": 0, "state": "done"}
    assert ada.delete(f"{at}/replays/{replay['id']}").json() == done


def test_replay_selects_by_time_and_state(hub: RunningHub, ada: httpx.Client, receiver: Receiver) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "delivered")
    settle(hub)
    hub.clock.advance(60)
    ada.post(f"{PATH}/{webhook['id']}/disable")
    create_repo(ada, "early")
    settle(hub)
    hub.clock.advance(60)
    since = moment(hub)
    create_repo(ada, "late")
    settle(hub)
    ada.post(f"{PATH}/{webhook['id']}/enable")
    received = len(receiver.received)
    for body, expected in (
        ({"since": since}, ["ada/late"]),
        ({"since": FIRST, "states": ["delivered"]}, ["ada/delivered"]),
        ({"since": FIRST, "states": ["skipped", "failed"]}, ["ada/early"]),
        ({"since": FIRST, "states": ["failed"]}, []),
    ):
        assert started(ada, webhook, **body)["total"] == len(expected)
        run_replays(hub)
        assert [one.json["repo"]["name"] for one in receiver.received[received:]] == expected
        received = len(receiver.received)


def test_selected_deliveries_are_replayed_once_each(hub: RunningHub, ada: httpx.Client, receiver: Receiver) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    for name in ("one", "two", "three"):
        create_repo(ada, name)
    settle(hub)
    newest, _, oldest = logs(ada, webhook)
    receiver.received.clear()
    replay = started(ada, webhook, deliveries=[newest["id"], oldest["id"], oldest["id"]])
    assert replay["total"] == 2
    run_replays(hub)
    assert names(receiver) == {newest["repo"]["name"], oldest["repo"]["name"]}


def test_large_replay_is_queued_in_parts_and_at_its_rate(
    hub: RunningHub, ada: httpx.Client, receiver: Receiver
) -> None:
    webhook = missed_events(hub, ada, receiver.url, 120)
    replay = started(ada, webhook, since=FIRST)
    began = hub.clock()
    run_replays(hub)
    assert ada.get(f"{PATH}/{webhook['id']}/replays/{replay['id']}").json()["done"] == 120
    assert names(receiver) == {f"ada/missed-{n}" for n in range(120)}
    assert hub.clock() - began >= 119 * SECOND / 200


def test_retries_after_an_outage_keep_to_the_rate_of_their_replay(
    hub: RunningHub, ada: httpx.Client, receiver: Receiver
) -> None:
    """All of them are due when the receiver responds again, and the replay has ended: each had its first attempt."""
    webhook = missed_events(hub, ada, receiver.url, 8)
    receiver.status = 500
    replay = started(ada, webhook, since=FIRST, rate=10)
    run_replays(hub)
    assert ada.get(f"{PATH}/{webhook['id']}/replays/{replay['id']}").json()["state"] == "done"
    receiver.status, receiver.received[:] = 200, []
    hub.clock.advance(600)
    received = []
    with stepwise(hub) as process:
        for _ in range(9):
            process.run()
            received.append(len(receiver.received))
            hub.clock.advance(0.1)
    assert received == list(range(9))
    assert len(names(receiver)) == 8


def test_replay_ends_although_each_commit_is_in_doubt(hub: RunningHub, ada: httpx.Client, receiver: Receiver) -> None:
    webhook = missed_events(hub, ada, receiver.url)
    started(ada, webhook, since=FIRST)
    run_replays(hub, in_doubt=True)
    assert len(names(receiver)) == 3


def test_replay_is_cancelled(hub: RunningHub, ada: httpx.Client, receiver: Receiver) -> None:
    webhook = missed_events(hub, ada, receiver.url)
    at = f"{PATH}/{webhook['id']}/replays"
    replay = started(ada, webhook, since=FIRST)
    cancelled = {**replay, "state": "cancelled"}
    assert ada.delete(f"{at}/{replay['id']}").json() == cancelled
    run_replays(hub)
    assert (ada.get(f"{at}/{replay['id']}").json(), receiver.received) == (cancelled, [])
    assert started(ada, webhook, since=FIRST)["total"] == 3


def test_disabling_cancels_replays(hub: RunningHub, ada: httpx.Client, receiver: Receiver) -> None:
    webhook = missed_events(hub, ada, receiver.url)
    replay = started(ada, webhook, since=FIRST)
    ada.post(f"{PATH}/{webhook['id']}/disable")
    at = f"{PATH}/{webhook['id']}/replays"
    assert ada.get(f"{at}/{replay['id']}").json()["state"] == "cancelled"
    refused = ada.post(at, json={"since": FIRST})
    assert (refused.status_code, refused.json()["error"]) == (409, "This webhook is disabled. Enable it first.")


def test_replays_of_a_webhook_run_one_after_another(hub: RunningHub, ada: httpx.Client, receiver: Receiver) -> None:
    webhook = missed_events(hub, ada, receiver.url, 1)
    replays = []
    for _ in range(10):
        hub.clock.advance(1)
        replays.append(started(ada, webhook, since=FIRST))
    refused = ada.post(f"{PATH}/{webhook['id']}/replays", json={"since": FIRST})
    assert (refused.status_code, refused.json()["error"].split(".")[0]) == (
        409,
        "10 replays of this webhook are running",
    )
    run_replays(hub)
    found = ada.get(f"{PATH}/{webhook['id']}/replays").json()
    # The first one sent the only delivery.
    assert [(each["id"], each["total"]) for each in found] == [
        (each["id"], 1 if each is replays[0] else 0) for each in reversed(replays)
    ]
    assert len(receiver.received) == 1


def test_right_to_read_is_checked_again(hub: RunningHub, ada: httpx.Client, receiver: Receiver) -> None:
    with api(hub, create_token(hub, create_user(hub, "eve"))) as eve:
        webhook = create_webhook(eve, receiver.url, "user:ada")
        eve.post(f"{PATH}/{webhook['id']}/disable")
        for name in ("hidden", "shown", "later"):
            create_repo(ada, name)
        settle(hub)
        eve.post(f"{PATH}/{webhook['id']}/enable")
        ada.put("/api/models/ada/hidden/settings", json={"private": True})
        replay = started(eve, webhook, since=FIRST)
        assert replay["total"] == 2
        ada.put("/api/models/ada/later/settings", json={"private": True})
        run_replays(hub)
        assert eve.get(f"{PATH}/{webhook['id']}/replays/{replay['id']}").json()["state"] == "done"
    assert [one.json["repo"]["name"] for one in receiver.received if one.kind == "repo create"] == ["ada/shown"]


def test_replay_of_a_pull_webhook_stores_events_again(hub: RunningHub, ada: httpx.Client) -> None:
    answer = ada.post(PATH, json={"pull": True, "watched": [{"type": "user", "name": "ada"}]})
    webhook = answer.json()["webhook"]
    create_repo(ada, "tiny")
    settle(hub)
    assert started(ada, webhook, since=FIRST)["total"] == 0
    replay = started(ada, webhook, since=FIRST, states=["stored"])
    run_replays(hub)
    assert ada.get(f"{PATH}/{webhook['id']}/replays/{replay['id']}").json()["done"] == 1
    assert [entry["state"] for entry in logs(ada, webhook)] == ["stored", "stored"]


@pytest.mark.one_engine
def test_replays_of_others_are_not_found(hub: RunningHub, ada: httpx.Client, receiver: Receiver) -> None:
    """W32."""
    webhook = missed_events(hub, ada, receiver.url)
    replay = started(ada, webhook, since=FIRST)
    (entry, *_) = logs(ada, webhook)
    eve = create_user(hub, "eve")
    create_organization(hub, "acme", eve)
    with api(hub, create_token(hub, eve)) as stranger:
        own = create_webhook(stranger, receiver.url, "user:eve")
        for root in (PATH, "/api/organizations/acme/settings/webhooks"):
            at = f"{root}/{webhook['id']}/replays"
            assert stranger.post(at, json={"since": FIRST}).status_code == 404
            for method, tail in (("GET", ""), ("GET", f"/{replay['id']}"), ("DELETE", f"/{replay['id']}")):
                assert stranger.request(method, f"{at}{tail}").status_code == 404
        assert stranger.get(f"{PATH}/{own['id']}/replays/{replay['id']}").status_code == 404
        refused = stranger.post(f"{PATH}/{own['id']}/replays", json={"deliveries": [entry["id"]]})
        assert (refused.status_code, refused.json()["error"]) == (404, "Delivery not found.")
    assert ada.get(f"{PATH}/{webhook['id']}/replays/x").json()["error"] == "Replay not found."
    assert ada.get(f"{PATH}/{webhook['id']}/replays/{replay['id']}").json()["state"] == "running"


@pytest.mark.one_engine
def test_error_names_the_invalid_field(ada: httpx.Client) -> None:
    webhook = create_webhook(ada, "https://ci.example/", "user:ada")
    for body, error in (
        ({}, "since: Send a time, or deliveries."),
        ({"since": "yesterday"}, "since: Give a time such as 2026-11-15T08:00:00Z."),
        ({"since": FIRST, "states": []}, "states: Choose one or more states: failed, skipped, delivered, stored."),
        (
            {"since": FIRST, "states": ["lost"]},
            "states: Choose one or more states: failed, skipped, delivered, stored.",
        ),
        ({"since": FIRST, "rate": 0}, "rate: Choose a rate of 1 to 200 deliveries a second."),
        ({"since": FIRST, "rate": 201}, "rate: Choose a rate of 1 to 200 deliveries a second."),
        ({"deliveries": []}, "deliveries: Name 1 to 100 deliveries by their ids."),
        ({"deliveries": ["x"]}, "deliveries: Name 1 to 100 deliveries by their ids."),
        ({"deliveries": [NOBODY], "since": FIRST}, "deliveries: Send either deliveries, or since and states."),
    ):
        answer = ada.post(f"{PATH}/{webhook['id']}/replays", json=body)
        assert (answer.status_code, answer.json()["error"]) == (422, error)
