"""From a change to the receiver: what is sent, to whom, and how it is shown."""

import base64
import hashlib
import hmac
from collections.abc import Iterator

import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, settle


@pytest.fixture
def hub(engine: Engine, tmp_path) -> Iterator[RunningHub]:
    settings = settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")
    with run_hub(settings) as started:
        yield started


def test_every_change_of_a_watched_user_is_received_in_order(hub: RunningHub, receiver: Receiver) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        webhook = create_webhook(ada, receiver.url, "user:ada", secret="whsec_" + base64.b64encode(b"k" * 24).decode())
        create_repo(ada, "tiny")
        sha = create_commit(ada, "ada/tiny", {"a.txt": b"one"})
        settle(hub)
        assert receiver.kinds == ["repo create", "repo.content update"]
        first, second = receiver.received
        assert [one.headers["x-hubgate-sequence"] for one in receiver.received] == ["1", "2"]
        assert second.json["updatedRefs"][0]["newSha"] == sha == second.json["repo"]["headSha"]
        assert second.json["webhook"] == {"id": webhook["id"], "version": 3}
        assert second.headers["x-webhook-secret"] == webhook["secret"]
        signed = f"{second.headers['webhook-id']}.{second.headers['webhook-timestamp']}.".encode() + second.body
        mac = base64.b64encode(hmac.digest(b"k" * 24, signed, hashlib.sha256)).decode()
        assert second.headers["webhook-signature"] == f"v1,{mac}"
        logs = ada.get(f"/api/settings/webhooks/{webhook['id']}/logs").json()
        assert [(log["state"], log["status"], log["event"]["scope"]) for log in logs] == [
            ("delivered", 200, "repo.content"),
            ("delivered", 200, "repo"),
        ]
        assert logs[1]["id"] == first.headers["webhook-id"]


def test_failure_is_retried_with_the_same_id_and_body(hub: RunningHub, receiver: Receiver) -> None:
    receiver.status = 500
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        webhook = create_webhook(ada, receiver.url, "user:ada")
        create_repo(ada, "tiny")
        assert settle(hub) == 1
        (log,) = ada.get(f"/api/settings/webhooks/{webhook['id']}/logs").json()
        assert (log["state"], log["status"], log["attempts"]) == ("retrying", 500, 1)
        receiver.status = 200
        hub.clock.advance(seconds=7)
        assert settle(hub) == 1
        one, two = receiver.received
        assert (one.headers["webhook-id"], one.body) == (two.headers["webhook-id"], two.body)
        assert [each.headers["x-hubgate-attempt"] for each in receiver.received] == ["1", "2"]
        full = ada.get(f"/api/settings/webhooks/{webhook['id']}/logs/{log['id']}").json()
        assert (full["state"], [each["status"] for each in full["tries"]]) == ("delivered", [500, 200])
        assert full["payload"]["repo"]["name"] == "ada/tiny"


def test_events_of_a_private_repo_are_sent_only_to_watchers_who_may_read_it(
    hub: RunningHub, receiver: Receiver
) -> None:
    create_user(hub, "ada")
    eve = create_user(hub, "eve")
    with api(hub, create_token(hub, eve)) as stranger:
        create_webhook(stranger, receiver.url, "user:ada")
    with api(hub, create_token(hub, create_user(hub, "zoe"))) as zoe:
        create_webhook(zoe, receiver.url, "user:zoe")
        create_repo(zoe, "secret", private=True)
    settle(hub)
    assert [one.json["repo"]["name"] for one in receiver.received] == ["zoe/secret"]


def test_disabled_webhook_sends_nothing_and_lists_what_it_skipped(hub: RunningHub, receiver: Receiver) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        webhook = create_webhook(ada, receiver.url, "user:ada")
        path = f"/api/settings/webhooks/{webhook['id']}"
        assert ada.post(f"{path}/disable").json()["webhook"]["disabled"] is True
        create_repo(ada, "tiny")
        settle(hub)
        assert receiver.received == []
        (log,) = ada.get(f"{path}/logs").json()
        assert (log["state"], log["reason"]) == ("skipped", "disabled")
        assert ada.post(f"{path}/enable").json()["webhook"]["status"] == "enabled"


def test_deep_changes_are_not_delivered(hub: RunningHub, receiver: Receiver) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        webhook = create_webhook(ada, receiver.url, "user:ada")
        for depth in (3, 4):
            asked = {"name": f"tiny{depth}"}
            ada.post("/api/repos/create", json=asked, headers={"x-hubgate-depth": str(depth)})
        settle(hub)
        assert [one.headers["x-hubgate-depth"] for one in receiver.received] == ["4"]
        logs = ada.get(f"/api/settings/webhooks/{webhook['id']}/logs").json()
        assert sorted((log["state"], log.get("reason")) for log in logs) == [("delivered", None), ("skipped", "loop")]
