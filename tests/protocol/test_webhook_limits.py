"""Limits of webhooks, exact even under concurrency."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed import packs
from tests.bed.background_delivery import deliver_in_background
from tests.bed.concurrency import run_concurrently
from tests.bed.engines import Engine, settings_for
from tests.bed.organizations import two_hubs
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_repo, head_of
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, settle

PATH = "/api/settings/webhooks"
OF_ACME = "/api/organizations/acme/settings/webhooks"
LARGEST = 256 * 1024


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    settings = settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8", webhook_quota="5")
    with run_hub(settings) as started:
        yield started


def body(*names: str, kind: str = "user") -> dict[str, Any]:
    return {"url": "https://ci.example/", "watched": [{"type": kind, "name": name} for name in names]}


def test_each_owner_has_at_most_fifty_webhooks(engine: Engine, tmp_path: Path) -> None:
    """The last places are raced for by two hubs on one database, which alone decides."""
    with two_hubs(engine, tmp_path) as (hub, other):
        ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
        create_organization(hub, "acme", ada, bob="admin")
        clients = [api(one, create_token(one, user)) for one in (hub, other) for user in (ada, bob)]
        mine = clients[::2]
        for _ in range(47):
            assert mine[0].post(PATH, json=body("ada")).status_code == 200
            assert mine[0].post(OF_ACME, json=body("acme", kind="org")).status_code == 200
        calls = [partial(one.post, PATH, json=body("ada")) for one in mine * 6]
        calls += [partial(one.post, OF_ACME, json=body("acme", kind="org")) for one in clients * 3]
        answers = run_concurrently(calls)
        assert sorted(answer.status_code for answer in answers[:12]) == [200] * 3 + [422] * 9
        assert sorted(answer.status_code for answer in answers[12:]) == [200] * 3 + [422] * 9
        refused = next(answer for answer in answers if answer.status_code == 422)
        assert refused.json()["error"] == "At most 50 webhooks. Delete one first."
        first = mine[0].get(PATH).json()[0]["id"]
        assert len(mine[0].get(PATH).json()) == len(mine[0].get(OF_ACME).json()) == 50
        assert mine[0].delete(f"{PATH}/{first}").status_code == 200
        assert mine[0].post(PATH, json=body("ada")).status_code == 200
        for client in clients:
            client.close()


def test_webhook_watches_at_most_a_hundred_names(hub: RunningHub) -> None:
    """After concurrent changes it watches what one of them set, never a mixture."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        hundred = [f"u{number}" for number in range(100)]
        webhook = ada.post(PATH, json=body(*hundred)).json()["webhook"]
        at = f"{PATH}/{webhook['id']}"
        assert [watch["name"] for watch in webhook["watched"]] == hundred
        for more in ([*hundred, "one-more"], ["same"] * 101):
            for place in (PATH, at):
                refused = ada.post(place, json=body(*more))
                assert (refused.status_code, refused.json()["error"]) == (
                    422,
                    "watched: At most 100 names can be watched.",
                )
        sets = [[f"s{number}-{turn}" for number in range(100)] for turn in range(8)]
        answers = run_concurrently([partial(ada.post, at, json=body(*names)) for names in sets])
        assert {answer.status_code for answer in answers} == {200}
        found = [watch["name"] for watch in ada.get(at).json()["webhook"]["watched"]]
        assert found in sets


def test_concurrent_changes_do_not_restore_a_deleted_webhook(hub: RunningHub) -> None:
    """A change after the deletion is 404."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        for _ in range(5):
            at = f"{PATH}/{ada.post(PATH, json=body('ada')).json()['webhook']['id']}"
            calls: list[Any] = [partial(ada.post, at, json={**body("ada", "bob"), "secret": "s"})] * 4
            calls += [partial(ada.post, f"{at}/disable"), partial(ada.post, f"{at}/enable"), partial(ada.delete, at)]
            answers: list[httpx.Response] = run_concurrently(calls)
            assert {answer.status_code for answer in answers} <= {200, 404}
            assert answers[-1].status_code == 200
            assert ada.get(at).status_code == 404
        assert ada.get(PATH).json() == []


def test_quota_counts_only_events(hub: RunningHub, receiver: Receiver) -> None:
    """Tests and replays do not count, and deliveries over the quota can be replayed."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        webhook = create_webhook(ada, receiver.url, "user:ada")
        at = f"{PATH}/{webhook['id']}"
        for number in range(4):
            create_repo(ada, f"r{number}")
        settle(hub)
        log = ada.get(f"{at}/logs").json()[0]
        with deliver_in_background(hub):
            for tail in ("test", f"replay/{log['id']}", "test"):
                assert ada.post(f"{at}/{tail}").json()["status"] == 200
        for number in range(4, 7):
            create_repo(ada, f"r{number}")
        settle(hub)
        skipped = [log for log in ada.get(f"{at}/logs").json() if log["state"] == "skipped"]
        assert [log["reason"] for log in skipped] == ["quota", "quota"]
        with deliver_in_background(hub):
            assert ada.post(f"{at}/replay/{skipped[0]['id']}").json()["status"] == 200


@pytest.mark.one_engine
@pytest.mark.parametrize(("refs", "length", "is_cut"), [(900, 20, None), (1000, 380, True)], ids=["fits", "cut"])
def test_payload_is_limited_to_256_kib(
    hub: RunningHub, receiver: Receiver, refs: int, length: int, is_cut: bool | None
) -> None:
    """A larger one is cut after the refs that fit, says so, and is the same on every attempt; the push is complete."""
    token = create_token(hub, create_user(hub, "ada"))
    receiver.status = 500
    with api(hub, token) as ada:
        create_repo(ada, "tiny")
        settle(hub)
        hub.clock.advance(1)
        create_webhook(ada, receiver.url, "user:ada")
        head = head_of(ada, "ada/tiny")
        names = [
            f"refs/heads/{number:04}/{'/'.join(['x' * 90] * 4)[: length - 16]}".rstrip("/") for number in range(refs)
        ]
        pushed = packs.commands([(None, head, name) for name in names]) + packs.pack([])
        report = packs.report_of(packs.push(hub.url, token, pushed))
        assert report == ["unpack ok", *(f"ok {name}" for name in names)]
        assert len(ada.get("/api/models/ada/tiny/refs").json()["branches"]) == refs + 1
        settle(hub)
        hub.clock.advance(7)
        receiver.status = 200
        settle(hub)
        first, second = receiver.received
        assert first.body == second.body
        assert len(first.body) <= LARGEST
        said = json.loads(first.body)
        told = [change["ref"] for change in said["updatedRefs"]]
        assert told == sorted(names)[: len(told)]
        assert said.get("truncated") == is_cut
        assert (len(told) < refs) is bool(is_cut)
        if is_cut:
            assert len(first.body) > LARGEST - 1000, "as many as fit"
        assert said["repo"]["name"] == "ada/tiny"
        assert set(said) - {"truncated"} == {"event", "repo", "updatedRefs", "webhook"}
