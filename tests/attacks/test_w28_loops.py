"""W28: a loop through a receiver whose change causes the same event again is stopped."""

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_repo, send_commit
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, run_receiver, settle


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    settings = settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8", webhook_quota="7")
    with run_hub(settings) as started:
        yield started


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        yield started


def test_w28_loop_through_a_receiver_ends_at_the_fifth_turn(hub: RunningHub, receiver: Receiver) -> None:
    """The receiver passes on the depth it was sent; each of its changes is one deeper."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        webhook = create_webhook(ada, receiver.url, "user:ada")
        create_repo(ada, "r0")
        for turn in range(1, 10):
            settle(hub)
            if len(receiver.received) < turn:
                break
            depth = receiver.received[-1].headers["x-hubgate-depth"]
            answer = ada.post("/api/repos/create", json={"name": f"r{turn}"}, headers={"x-hubgate-depth": depth})
            assert answer.status_code == 200, "the change itself is never refused"
        assert [one.headers["x-hubgate-depth"] for one in receiver.received] == ["0", "1", "2", "3", "4"]
        last = ada.get(f"/api/settings/webhooks/{webhook['id']}/logs").json()[0]
        assert (last["state"], last["reason"]) == ("skipped", "loop")


@pytest.mark.one_engine
@pytest.mark.parametrize("how", ["commit", "branch", "settings", "delete", "git"])
def test_w28_every_change_records_its_depth(hub: RunningHub, receiver: Receiver, how: str) -> None:
    token = create_token(hub, create_user(hub, "ada"))
    with api(hub, token) as ada:
        create_repo(ada, "tiny")
        settle(hub)
        webhook = create_webhook(ada, receiver.url, "user:ada")
        ada.headers["x-hubgate-depth"] = "4"
        if how == "commit":
            answer = send_commit(ada, "ada/tiny", {"a.txt": b"a"})
        elif how == "branch":
            answer = ada.post("/api/models/ada/tiny/branch/new", json={})
        elif how == "settings":
            answer = ada.put("/api/models/ada/tiny/settings", json={"private": True})
        elif how == "delete":
            answer = ada.request("DELETE", "/api/repos/delete", json={"name": "tiny"})
        else:
            head = ada.get("/api/models/ada/tiny").json()["sha"]
            basic = base64.b64encode(f"ada:{token}".encode()).decode()
            line = f"{'0' * 40} {head} refs/heads/pushed\0report-status\n"
            body = f"{len(line) + 4:04x}{line}0000".encode() + empty_pack()
            headers = {"authorization": f"Basic {basic}", "content-type": "application/x-git-receive-pack-request"}
            answer = ada.post("/ada/tiny.git/git-receive-pack", content=body, headers=headers)
            assert b"ok refs/heads/pushed" in answer.content, answer.content
        assert answer.status_code == 200, answer.text
        settle(hub)
        (log,) = ada.get(f"/api/settings/webhooks/{webhook['id']}/logs").json()
        assert (log["state"], log["reason"]) == ("skipped", "loop")
    assert receiver.received == []


def empty_pack() -> bytes:
    head = b"PACK" + (2).to_bytes(4) + (0).to_bytes(4)
    return head + hashlib.sha1(head, usedforsecurity=False).digest()


@pytest.mark.one_engine
@pytest.mark.parametrize("depth", ["-1", "x", "4.0", "٤", "0x4", "1e9", "99999999999999999999", "4,4"])
def test_w28_invalid_depth_is_not_an_error(hub: RunningHub, receiver: Receiver, depth: str) -> None:
    """Nonsense counts as zero, too large a number as very deep."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        webhook = create_webhook(ada, receiver.url, "user:ada")
        headers = {"x-hubgate-depth": depth.encode()}
        answer = ada.post("/api/repos/create", json={"name": "tiny"}, headers=headers)  # type: ignore[arg-type]
        assert answer.status_code == 200
        settle(hub)
        (log,) = ada.get(f"/api/settings/webhooks/{webhook['id']}/logs").json()
        assert log["state"] == ("skipped" if depth.startswith("999") else "delivered")


def test_w28_loop_that_hides_its_depth_ends_at_the_quota(hub: RunningHub, receiver: Receiver) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        webhook = create_webhook(ada, receiver.url, "user:ada")
        other = create_webhook(ada, receiver.url, "user:ada", domains=["discussion"])
        for turn in range(10):
            create_repo(ada, f"r{turn}")
            settle(hub)
        assert len(receiver.received) == 7
        at = f"/api/settings/webhooks/{webhook['id']}"
        logs = ada.get(f"{at}/logs").json()
        assert [(log["state"], log.get("reason")) for log in logs] == [("skipped", "quota")] * 3 + [
            ("delivered", None)
        ] * 7
        assert ada.get(f"/api/settings/webhooks/{other['id']}/logs").json() == []
        hub.clock.advance(24 * 3600 + 1)
        create_repo(ada, "tomorrow")
        settle(hub)
        assert receiver.received[-1].json["repo"]["name"] == "ada/tomorrow"
