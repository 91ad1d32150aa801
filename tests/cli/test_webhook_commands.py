"""`hubgate webhooks`: output for people and for programs."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed.background_delivery import deliver_in_background
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.hostile import json_response, run_hostile_server
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.replays import run_replays
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, run_receiver, secret_of, settle
from tests.cli.test_user_commands import Shell

from hubgate.server.clock import SECOND


@pytest.fixture
def hub(sqlite_template: Path, tmp_path: Path) -> Iterator[RunningHub]:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with run_hub(settings_for(url, tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


@pytest.fixture
def shell(hub: RunningHub, tmp_path: Path) -> Shell:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    return Shell(hub, tmp_path, create_token(hub, ada))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        yield started


def test_webhook_commands(hub: RunningHub, shell: Shell) -> None:
    assert shell.says("webhooks", "list") == "No webhooks. Try: hubgate webhooks create --help\n"
    watch = ("--watch", "org:acme", "user:ada", "--watch", "model:ada/x")
    made = shell.json("webhooks", "create", "--url", "https://ci.example/", *watch, "--domain", "repo", "--secret", "s")
    assert (made["url"], made["secret"], made["domains"]) == ("https://ci.example/", "s", ["repo"])
    assert [f"{one['type']}:{one['name']}" for one in made["watched"]] == ["org:acme", "user:ada", "model:ada/x"]
    head, row = shell.says("webhooks", "list").splitlines()
    assert head.split() == ["ID", "STATE", "URL", "24H", "LAST"]
    assert row.split() == [made["id"][-6:], "enabled", "https://ci.example/", "0", "-"]
    shown = shell.says("webhooks", "get", made["id"])
    assert "secret   set\n" in shown
    updated = shell.run("webhooks", "update", made["id"], "--secret-stdin", "--json", stdin=b"fresh\n")
    assert '"secret": "fresh"' in updated.stdout
    assert shell.json("webhooks", "update", made["id"], "--ordered")["ordered"] is True
    assert shell.json("webhooks", "update", made["id"], "--no-ordered")["ordered"] is False
    unsigned = shell.json("webhooks", "update", made["id"], "--no-secret", "--domain", "discussion")
    assert unsigned["hasSecret"] is False
    assert shell.says("webhooks", "disable", made["id"]).startswith(f"✓ {made['id']} is disabled.")
    assert shell.json("webhooks", "enable", made["id"])["status"] == "enabled"
    assert "Pass --yes" in shell.refused("webhooks", "delete", made["id"])
    for taken in (["--url", "https://x.example/"], ["--no-secret"]):
        refused = shell.refused("webhooks", "update", made["id"], *taken, "--overlap", "60", status=2)
        assert refused.startswith("--overlap requires a new secret.")
    for stdin, why in (
        (b"caf\xe9\n", "printable ASCII"),
        ("café\n".encode(), "printable ASCII"),
        (b"a\x00b\n", "printable ASCII"),
        (b"one\ntwo\n", "more than one line"),
        (b"\n", "the secret on standard input is empty"),
    ):
        for locale in ("C", "C.UTF-8"):
            foul = shell.run("webhooks", "update", made["id"], "--secret-stdin", stdin=stdin, LC_ALL=locale)
            assert (foul.returncode, foul.stdout, foul.stderr.count("\n")) == (1, "", 1), foul.stderr
            assert why in foul.stderr
    assert shell.json("webhooks", "get", made["id"])["hasSecret"] is False
    for nothing in ([], ["--overlap", "60"]):
        assert "Pass --url, --watch" in shell.refused("webhooks", "update", made["id"], *nothing, status=2)
    assert "the secret on standard input is empty" in shell.refused("webhooks", "update", made["id"], "--secret-stdin")
    with shell.begun("webhooks", "update", made["id"], "--secret-stdin") as begun:
        assert begun.stdin is not None
        begun.stdin.write(b"kept open\n")
        begun.stdin.flush()
        assert begun.wait(60) == 0, "it does not wait for what may come after"
    assert secret_of(hub, made["id"]) == "kept open"
    assert "secret" not in shell.json("webhooks", "get", made["id"])
    assert shell.says("webhooks", "delete", made["id"], "--yes") == f"✓ Deleted {made['id']}.\n"
    assert shell.json("webhooks", "list") == []
    assert shell.refused("webhooks", "get", made["id"])


def test_webhooks_of_an_organization_and_pull_webhooks(hub: RunningHub, shell: Shell) -> None:
    made = shell.json("webhooks", "create", "--pull", "--watch", "org:acme", "--org", "acme")
    assert made["pull"] is True
    assert "(pull)" in shell.says("webhooks", "list", "--org", "acme")
    assert shell.json("webhooks", "list") == []
    kept = "✓ Stored: this webhook has no URL; its events are pulled.\n"
    assert shell.says("webhooks", "test", made["id"], "--org", "acme") == kept
    (logged,) = shell.json("webhooks", "activity", made["id"], "--org", "acme")
    assert shell.says("webhooks", "replay", made["id"], logged["id"], "--org", "acme") == kept
    shell.says("repos", "create", "acme/rows")
    settle(hub)
    with deliver_in_background(hub, run_replays):
        since = shell.says("webhooks", "replay", made["id"], "--since", "2000-01-01", "--org", "acme")
    assert since == "✓ 1 stored again: this webhook has no URL; its events are pulled.\n"
    assert " update (test) " in shell.says("webhooks", "activity", made["id"], "--org", "acme")


def test_queued_delivery_is_reported_as_queued(shell: Shell) -> None:
    about = {
        "event": {"id": "e", "action": "update", "scope": "repo.content"},
        "repo": {"type": "model", "name": "a/b"},
    }
    logged = {"id": "d", **about, "state": "pending", "attempts": 0, "at": "2026-11-15T08:00:00.000Z"}
    with run_hostile_server(json_response(200, {"id": "d", "status": None}), json_response(200, logged)) as server:
        done = shell.run("webhooks", "test", "x", HUBGATE_ENDPOINT=server.url)
    said = "! The delivery is queued; it has not been attempted yet. See: hubgate webhooks activity x\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, said, "")


def test_replay_skips_events_that_may_no_longer_be_read(hub: RunningHub, shell: Shell, receiver: Receiver) -> None:
    with api(hub, create_token(hub, create_user(hub, "bob"))) as bob:
        made = shell.json("webhooks", "create", "--url", receiver.url, "--watch", "user:ada", "user:bob")
        replay = ("webhooks", "replay", made["id"], "--since", "2000-01-01")
        create_repo(bob, "hidden")
        settle(hub)
        assert bob.put("/api/models/bob/hidden/settings", json={"private": True}).status_code == 200
    assert shell.says(*replay) == "Nothing to replay.\n"
    shell.says("repos", "create", "tiny")
    settle(hub)
    with deliver_in_background(hub, run_replays):
        done = shell.says(*replay, "--rate", "50")
        assert done == f"✓ 1 replayed. See: hubgate webhooks activity {made['id']}\n"
        assert shell.json(*replay, "--state", "failed")["total"] == 0


def test_replay_is_cancelled(hub: RunningHub, shell: Shell, receiver: Receiver) -> None:
    made = shell.json("webhooks", "create", "--url", receiver.url, "--watch", "user:ada")
    shell.says("repos", "create", "tiny")
    settle(hub)
    with api(hub, shell.variables["HUBGATE_TOKEN"]) as client:
        at = f"/api/settings/webhooks/{made['id']}/replays"
        body = {"since": "2000-01-01T00:00:00Z", "states": ["delivered"]}
        started = client.post(at, json=body).json()
    cancel = ("webhooks", "replay", made["id"], "--cancel", started["id"])
    assert shell.says(*cancel) == "✓ Cancelled: 0 of 1 were sent.\n"
    assert shell.json(*cancel) == {**started, "state": "cancelled"}
    for rate in ("0", "201", "1.5", "x"):
        assert "from 1 to 200" in shell.run("webhooks", "replay", made["id"], "--since", "1h", "--rate", rate).stderr


def test_activity_test_and_replay_commands(hub: RunningHub, shell: Shell, receiver: Receiver) -> None:
    made = shell.json("webhooks", "create", "--url", receiver.url, "--watch", "user:ada")
    assert shell.says("webhooks", "activity", made["id"]) == "No deliveries.\n"
    receiver.status = 418
    with api(hub, shell.variables["HUBGATE_TOKEN"]) as client:
        create_repo(client, "tiny")
    settle(hub)
    head, row = shell.says("webhooks", "activity", made["id"]).splitlines()
    assert head.split() == ["DELIVERY", "STATE", "EVENT", "REPO", "STATUS", "TRIES", "AGE"]
    delivery, state, scope, action, repo, status, tries, _ = row.split()
    assert (state, scope, action, repo, status, tries) == ("retrying", "repo", "create", "ada/tiny", "418", "1")
    assert len(shell.json("webhooks", "activity", made["id"], "--state", "retrying", "--limit", "5")) == 1
    looked = shell.says("webhooks", "activity", made["id"], delivery).splitlines()
    assert [line[:9].rstrip() for line in looked] == ["id", "state", "event", "repo", "queued", "next try", "try 1"]
    assert (looked[1], looked[-1][-6:]) == ("state    retrying", "418 {}")
    assert shell.json("webhooks", "activity", made["id"], delivery)["payload"]["repo"]["name"] == "ada/tiny"
    assert shell.refused("webhooks", "activity", made["id"], "6530c2a1b2c3d4e5f6071829").startswith(
        "Delivery not found."
    )
    with deliver_in_background(hub):
        refused = shell.run("webhooks", "test", made["id"])
        assert (refused.returncode, refused.stdout) == (1, "✕ The receiver answered 418.\n")
        receiver.status = 200
        assert shell.says("webhooks", "test", made["id"]) == "✓ The receiver answered 200.\n"
        assert shell.says("webhooks", "replay", made["id"], delivery) == "✓ The receiver answered 200.\n"
        since = shell.says("webhooks", "replay", made["id"], "--since", "2000-01-01", "--rate", "50")
        assert since == "Nothing to replay.\n"
    for option in (["--state", "failed"], ["--rate", "3"]):
        refused = shell.refused("webhooks", "replay", made["id"], delivery, *option, status=2)
        assert refused == "--state and --rate require --since."
    events = [row.split()[2:5] for row in shell.says("webhooks", "activity", made["id"]).splitlines()[1:]]
    assert [event[2] for event in events] == ["(replay)", "(test)", "(test)", "ada/tiny"]


def test_list_counts_and_ages_refer_to_the_same_deliveries(hub: RunningHub, shell: Shell, receiver: Receiver) -> None:
    """Tests are deliveries, too, also where there was no event yet."""
    hub.clock.now = int(time.time()) * SECOND
    made = shell.json("webhooks", "create", "--url", receiver.url, "--watch", "user:ada")
    with deliver_in_background(hub):
        for count in (1, 2):
            shell.says("webhooks", "test", made["id"])
            _, row = shell.says("webhooks", "list").splitlines()
            today, last = row.split()[3:]
            assert today == str(count)
            assert last.endswith("s")


def test_json_output_equals_the_api_response(hub: RunningHub, shell: Shell, receiver: Receiver) -> None:
    made = shell.json("webhooks", "create", "--url", receiver.url, "--watch", "user:ada")
    shell.says("repos", "create", "tiny")
    settle(hub)
    with api(hub, shell.variables["HUBGATE_TOKEN"]) as client:
        at = f"/api/settings/webhooks/{made['id']}"
        (logged,) = client.get(f"{at}/logs").json()
        assert (logged["nextAttemptAt"], logged["replayOf"]) == (None, None)
        assert shell.json("webhooks", "activity", made["id"]) == [logged]
        one = shell.json("webhooks", "activity", made["id"], logged["id"])
        assert {name: one[name] for name in logged} == logged
        webhook = client.get(at).json()["webhook"]
        told = shell.json("webhooks", "get", made["id"])
        assert {name: told[name] for name in webhook} == webhook
