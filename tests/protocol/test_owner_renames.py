"""Renaming an owner renames its repos: watchers receive a move event for each."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, submit
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Received, Receiver, create_webhook, settle

from hubgate.server.accounts.organizations import settings as of_organizations
from hubgate.server.audit.model import SYSTEM

ROUNDS = 4


@pytest.fixture
def hub(engine: Engine, tmp_path) -> Iterator[RunningHub]:
    settings = settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")
    with run_hub(settings) as started:
        yield started


def rename_user(browser: httpx.Client, name: str) -> httpx.Response:
    return submit(browser, "/settings/profile", "/settings/rename", username=name)


def rename_organization(browser: httpx.Client, old: str, new: str) -> httpx.Response:
    at = f"/organizations/{old}/settings"
    return submit(browser, f"{at}/profile", f"{at}/rename", name=new)


def moves_to(receiver: Receiver, webhook: dict[str, Any]) -> list[Received]:
    """The moves that a webhook received, by type and name of the repo."""
    told = [one for one in receiver.received if one.json["webhook"]["id"] == webhook["id"]]
    assert {one.kind for one in told} <= {"repo move"}
    return sorted(told, key=lambda one: (one.json["repo"]["type"], one.json["repo"]["name"]))


def from_and_to(told: list[Received]) -> list[tuple[str, str, str]]:
    said = [one.json for one in told]
    return [(each["repo"]["type"], each["repo"]["name"], each["movedTo"]["name"]) for each in said]


@pytest.mark.one_engine
def test_watchers_of_an_organization_and_of_a_repo_receive_moves(hub: RunningHub, receiver: Receiver) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada)
    with (
        api(hub, create_token(hub, ada)) as owner,
        api(hub, create_token(hub, bob)) as other,
        browser_of(hub, ada) as page,
    ):
        tiny = create_repo(owner, "acme/tiny")
        create_repo(owner, "acme/tiny", "dataset")
        create_repo(owner, "acme/secret", private=True)
        create_repo(owner, "own")
        settle(hub)
        of_owner = create_webhook(owner, receiver.url, "org:acme")
        of_repo = create_webhook(other, receiver.url, "model:acme/tiny")
        of_stranger = create_webhook(other, receiver.url, "org:acme", "model:acme/secret")
        changed = owner.get("/api/models/acme/tiny").json()["lastModified"]
        hub.clock.advance(60)
        assert rename_organization(page, "acme", "Emca").status_code == 303
        assert owner.get("/api/models/Emca/tiny").json()["lastModified"] == changed, "its files are as old as they were"
        settle(hub)
        public = [("dataset", "acme/tiny", "Emca/tiny"), ("model", "acme/tiny", "Emca/tiny")]
        told = moves_to(receiver, of_owner)
        assert from_and_to(told) == [public[0], ("model", "acme/secret", "Emca/secret"), public[1]]
        assert {one.headers["x-hubgate-sequence"] for one in told} == {"2"}
        assert {one.json["movedTo"]["owner"]["id"] for one in told} == {acme.id}
        assert {one.json["repo"]["owner"]["id"] for one in told} == {acme.id}
        assert told[2].json["repo"]["url"]["web"] == f"{hub.url}/acme/tiny"
        assert from_and_to(moves_to(receiver, of_repo)) == [public[1]]
        assert from_and_to(moves_to(receiver, of_stranger)) == public, "what is private stays so"
        receiver.received.clear()
        create_commit(owner, "Emca/tiny", {"a.txt": b"one"})
        settle(hub)
        assert {one.json["repo"]["name"] for one in receiver.received} == {"Emca/tiny"}
        assert {one.headers["x-hubgate-sequence"] for one in receiver.received} == {"3"}
        events = owner.get("/api/models/Emca/tiny/events").json()
        assert [(one["seq"], one["payload"]["event"]["action"]) for one in events] == [
            (1, "create"),
            (2, "move"),
            (3, "update"),
        ]
        assert {one["payload"]["repo"]["id"] for one in events} == {tiny["id"]}
        assert len(owner.get("/api/models/ada/own/events").json()) == 1, "its founder's repos stay where they are"


@pytest.mark.one_engine
def test_repos_follow_their_users_new_name(hub: RunningHub, receiver: Receiver) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as owner, browser_of(hub, ada) as page:
        create_repo(owner, "one")
        create_repo(owner, "two", "space")
        settle(hub)
        webhook = create_webhook(owner, receiver.url, "user:ada")
        assert rename_user(page, "lovelace").status_code == 303
        settle(hub)
        assert from_and_to(moves_to(receiver, webhook)) == [
            ("model", "ada/one", "lovelace/one"),
            ("space", "ada/two", "lovelace/two"),
        ]
        receiver.received.clear()
        # Setting the current name changes nothing; another spelling of it does.
        assert rename_user(page, "lovelace").status_code == 303
        assert rename_user(page, "ada lovelace").status_code == 422
        settle(hub)
        assert receiver.received == []
        assert rename_user(page, "Lovelace").status_code == 303
        settle(hub)
        assert [new for _, _, new in from_and_to(moves_to(receiver, webhook))] == ["Lovelace/one", "Lovelace/two"]


@pytest.mark.one_engine
def test_rename_by_an_operator_is_sent_to_watchers(hub: RunningHub, receiver: Receiver) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as owner:
        create_repo(owner, "acme/tiny")
        settle(hub)
        webhook = create_webhook(owner, receiver.url, "org:acme")
        for name in ("emca", "emca"):
            hub.call(lambda opened, name=name: of_organizations.rename(opened.accounts, acme, name, SYSTEM))
        settle(hub)
        assert from_and_to(moves_to(receiver, webhook)) == [("model", "acme/tiny", "emca/tiny")]


def test_repo_created_or_moved_during_a_rename_has_the_right_name(hub: RunningHub) -> None:
    """In either order, the events end with where the repo is."""
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as script:
        create_repo(script, "acme/first")
        for number in range(ROUNDS):
            old = script.get(f"/api/organizations/{acme.name}/overview", follow_redirects=True).json()["name"]
            create_repo(script, f"own{number}")

            def rename(name: str = f"acme{number}") -> httpx.Response:
                hub.call(lambda opened: of_organizations.rename(opened.accounts, acme, name, SYSTEM))
                return httpx.Response(204)

            def make(number: int = number, old: str = old) -> httpx.Response:
                return script.post("/api/repos/create", json={"name": f"made{number}", "organization": old})

            def move(number: int = number, old: str = old) -> httpx.Response:
                asked = {"fromRepo": f"ada/own{number}", "toRepo": f"{old}/own{number}"}
                return script.post("/api/repos/move", json=asked)

            answers = run_concurrently([rename, make, move])
            assert [answer.status_code for answer in answers] == [204, 200, 200], [one.text for one in answers]
            for name in (f"acme{number}/made{number}", f"acme{number}/own{number}"):
                events = script.get(f"/api/models/{name}/events").json()
                last = events[-1]["payload"]
                assert last.get("movedTo", last["repo"])["name"] == name
                assert [one["seq"] for one in events] == list(range(1, len(events) + 1))


def test_events_of_many_repos_are_recorded_together(hub: RunningHub) -> None:
    """Each has one event."""
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as script, browser_of(hub, ada) as page:
        create_repo(script, "one")
        _multiply(hub, ada.id, 5_000)
        assert rename_user(page, "lovelace").status_code == 303
    row = hub.call(
        lambda opened: opened.db.one(
            "SELECT count(*) AS events, count(DISTINCT repo_id) AS repos FROM events WHERE action = 'move'"
        )
    )
    assert (row["events"], row["repos"]) == (5_001, 5_001)


def _multiply(hub: RunningHub, owner_id: str, count: int) -> None:
    """Copies the only repo in the table."""

    async def unit(tx: Any) -> None:
        row = await tx.one("SELECT * FROM repos WHERE owner_id = :id", {"id": owner_id})
        names = list(row.keys())
        sql = f"INSERT INTO repos ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"
        like = {name: row[name] for name in names}
        await tx.exec_many(sql, [{**like, "id": f"{number:024x}", "name": f"r{number}"} for number in range(count)])

    hub.call(lambda opened: opened.db.write_long(unit))
