"""Dry runs of webhooks, and why a webhook did not get an event."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.app_webhooks import WATCHED, AppWebhookScenario
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, logs, settle

from hubgate.server.accounts.model import User

PATH = "/api/settings/webhooks"
DAY = 24 * 3600


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


@pytest.fixture
def bob(hub: RunningHub) -> Iterator[httpx.Client]:
    with api(hub, create_token(hub, create_user(hub, "bob"))) as client:
        yield client


def body(*watched: str, **more: Any) -> dict[str, Any]:
    watches = [dict(zip(("type", "name"), text.split(":"), strict=True)) for text in watched]
    return {"url": "https://ci.example/hook", "watched": watches, **more}


def dry_run(client: httpx.Client, *watched: str, at: str = PATH, **more: Any) -> list[str]:
    response = client.post(f"{at}/dry-run", json=body(*watched, **more))
    assert response.status_code == 200, response.text
    result = response.json()
    assert result["total"] == len(result["events"])
    assert all(set(each) == {"id", "event", "repo", "at"} for each in result["events"])
    return [f"{each['event']['scope']} {each['event']['action']} {each['repo']['name']}" for each in result["events"]]


def why_not(client: httpx.Client, webhook: dict[str, Any], event: str, at: str = PATH) -> tuple[str, str | None]:
    response = client.get(f"{at}/{webhook['id']}/why-not", params={"event": event})
    assert response.status_code == 200, response.text
    found = response.json()
    assert set(found) == {"event", "outcome", "rule", "text"}
    assert found["event"] == event
    assert found["text"].endswith(".")
    return found["outcome"], found["rule"]


def event_ids(client: httpx.Client, *watched: str) -> list[str]:
    """The ids of matching events, oldest first."""
    found = client.post(f"{PATH}/dry-run", json=body(*watched)).json()["events"]
    return [each["id"] for each in reversed(found)]


def discuss(client: httpx.Client, repo: str) -> None:
    response = client.post(f"/api/models/{repo}/discussions", json={"title": "Why?", "description": "Because."})
    assert response.status_code == 200, response.text


def test_dry_run_lists_what_a_webhook_would_have_received(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client, bob: httpx.Client
) -> None:
    """The same events as a webhook that existed, newest first; of the last seven days."""
    create_repo(ada, "old")
    hub.clock.advance(7 * DAY + 60)
    webhook = create_webhook(bob, receiver.url, "user:ada")
    for name, private in (("tiny", False), ("hidden", True)):
        create_repo(ada, name, private=private)
        hub.clock.advance(1)
        create_commit(ada, f"ada/{name}", {"a.txt": b"a"})
        hub.clock.advance(1)
    discuss(ada, "ada/tiny")
    settle(hub)
    public = ["discussion create ada/tiny", "repo.content update ada/tiny", "repo create ada/tiny"]
    sent = [f"{one['event']['scope']} {one['event']['action']} {one['repo']['name']}" for one in logs(bob, webhook)]
    assert dry_run(bob, "user:ada") == sent == public
    hidden = ["repo.content update ada/hidden", "repo create ada/hidden"]
    assert dry_run(ada, "user:ada") == [public[0], *hidden, *public[1:]]
    assert dry_run(ada, "model:ada/hidden", "model:ADA/hidden") == hidden
    assert dry_run(bob, "model:ada/hidden") == dry_run(bob, "model:ada/absent") == dry_run(bob, "org:none") == []
    assert dry_run(bob, "user:ada", "model:ada/tiny", domains=["discussion"]) == public[:1]
    # A deleted repo has the name that it had.
    hub.clock.advance(1)
    assert ada.request("DELETE", "/api/repos/delete", json={"name": "tiny"}).status_code == 200
    assert dry_run(bob, "user:ada") == ["repo delete ada/tiny", *public]
    assert len(bob.get(PATH).json()) == 1, "nothing is stored"
    assert len(receiver.received) == len(public), "nothing is sent"


@pytest.mark.one_engine
def test_dry_run_of_a_change_uses_the_stored_settings(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client, bob: httpx.Client
) -> None:
    create_repo(ada, "tiny")
    hub.clock.advance(1)
    discuss(ada, "ada/tiny")
    webhook = create_webhook(bob, receiver.url, "user:ada", domains=["repo"])
    at = f"{PATH}/{webhook['id']}"

    def kinds(**changes: Any) -> list[str]:
        found = bob.post(f"{at}/dry-run", json=changes).json()
        return [each["event"]["scope"] for each in found["events"]]

    assert kinds() == kinds(watched=[]) == ["repo"]
    assert kinds(domains=["discussion"]) == ["discussion"]
    assert kinds(watched=[{"type": "user", "name": "bob"}]) == []
    assert bob.get(at).json()["webhook"]["domains"] == ["repo"], "nothing is changed"
    assert ada.post(f"{at}/dry-run", json={}).status_code == 404
    for wrong, field in (({"url": "http://127.0.0.1:22/"}, "url"), ({"domains": []}, "domains")):
        refused = bob.post(f"{at}/dry-run", json=wrong)
        assert (refused.status_code, refused.json()["error"].partition(":")[0]) == (422, field)
    assert bob.post(f"{PATH}/dry-run", json={"watched": []}).status_code == 422


@pytest.mark.one_engine
def test_dry_run_includes_repos_that_move_in(hub: RunningHub, user: User, ada: httpx.Client, bob: httpx.Client) -> None:
    create_organization(hub, "acme", user)
    create_repo(ada, "tiny")
    hub.clock.advance(1)
    moved = ada.post("/api/repos/move", json={"fromRepo": "ada/tiny", "toRepo": "acme/tiny", "type": "model"})
    assert moved.status_code == 200
    assert dry_run(bob, "org:acme") == ["repo move acme/tiny"]
    assert dry_run(bob, "user:ada") == ["repo move acme/tiny", "repo create acme/tiny"]


def test_dry_run_of_an_app_shows_what_the_app_may_read(hub: RunningHub) -> None:
    scenario = AppWebhookScenario(hub)
    repos = {
        "webhooks": {"ada/open"},
        "webhooks read-repos": {"ada/open", "ada/secret"},
        "webhooks contribute-repos": {"ada/open"},
    }
    for scope, expected in repos.items():
        with api(hub, scenario.grant(f"openid profile {scope}")) as app:
            found = dry_run(app, *WATCHED)
            assert {line.split()[-1] for line in found} == expected, scope
    with api(hub, scenario.grant("openid profile webhooks read-repos", scenario.acme)) as app:
        assert {line.split()[-1] for line in dry_run(app, *WATCHED)} == {"ada/open", "ada/secret", "acme/secret"}


@pytest.mark.one_engine
def test_dry_run_of_an_organization_reads_as_the_organization(
    hub: RunningHub, user: User, ada: httpx.Client, bob: httpx.Client
) -> None:
    create_organization(hub, "acme", user)
    at = "/api/organizations/acme/settings/webhooks"
    create_repo(ada, "acme/plans", private=True)
    hub.clock.advance(1)
    create_repo(ada, "mine", private=True)
    assert dry_run(ada, "org:acme", "user:ada", at=at) == ["repo create acme/plans"]
    assert dry_run(ada, "org:acme", "user:ada") == ["repo create ada/mine", "repo create acme/plans"]
    assert bob.post(f"{at}/dry-run", json=body("org:acme")).status_code == 403


def test_dry_run_lists_at_most_a_thousand_events(hub: RunningHub, ada: httpx.Client) -> None:
    create_repo(ada, "tiny")
    (first,) = event_ids(ada, "user:ada")

    async def copy(opened: Any) -> None:
        async def unit(tx: Any) -> None:
            await tx.exec(
                """
                WITH RECURSIVE numbers AS (SELECT 2 AS n UNION ALL SELECT n + 1 FROM numbers WHERE n < 1100)
                INSERT INTO events
                    (id, repo_id, repo_seq, repo_type, owner_id, private, scope, action, body, created_at)
                SELECT 'copy' || n, e.repo_id, n, e.repo_type, e.owner_id, 0, e.scope, e.action, e.body,
                    e.created_at + n
                FROM events e, numbers WHERE e.id = :id
                """,
                {"id": first},
            )

        await opened.db.write_long(unit)

    hub.call(copy)
    for watched in ("user:ada", "model:ada/tiny"):
        found = event_ids(ada, watched)
        assert (len(found), found[-1]) == (1000, "copy1100")


def test_why_not_names_the_rule(
    hub: RunningHub, receiver: Receiver, user: User, ada: httpx.Client, bob: httpx.Client
) -> None:
    create_repo(ada, "early")
    settle(hub)
    hub.clock.advance(1)
    webhook = create_webhook(ada, receiver.url, "user:ada", domains=["repo"])
    other = create_webhook(ada, receiver.url, "user:bob")
    pull = ada.post(PATH, json={**body("user:ada"), "url": None, "pull": True}).json()["webhook"]
    hub.clock.advance(1)
    create_repo(ada, "tiny")
    early, tiny = event_ids(ada, "user:ada")
    assert why_not(ada, webhook, tiny) == ("pending", "fan_out")
    receiver.status = 500
    settle(hub)
    assert why_not(ada, webhook, early) == ("not_sent", "watched_later")
    assert why_not(ada, webhook, tiny) == ("pending", "retrying")
    assert why_not(ada, other, tiny) == ("not_sent", "not_watched")
    assert why_not(ada, pull, tiny) == ("delivered", None)
    receiver.status = 200
    hub.clock.advance(60)
    settle(hub)
    assert why_not(ada, webhook, tiny) == ("delivered", None)
    discuss(ada, "ada/tiny")
    settle(hub)
    assert why_not(ada, webhook, event_ids(ada, "user:ada")[-1]) == ("not_sent", "domain")
    assert ada.post(f"{PATH}/{webhook['id']}/disable").status_code == 200
    hub.clock.advance(1)
    create_commit(ada, "ada/tiny", {"a.txt": b"a"})
    settle(hub)
    assert why_not(ada, webhook, event_ids(ada, "user:ada")[-1]) == ("not_sent", "disabled")
    # A later replay counts.
    assert ada.post(f"{PATH}/{webhook['id']}/enable").status_code == 200
    hub.clock.advance(1)
    receiver.status = 410
    create_commit(ada, "ada/tiny", {"a.txt": b"b"})
    settle(hub)
    assert why_not(ada, webhook, event_ids(ada, "user:ada")[-1]) == ("not_sent", "failed")


@pytest.mark.one_engine
def test_why_not_hides_events_of_hidden_repos(
    hub: RunningHub, receiver: Receiver, user: User, ada: httpx.Client, bob: httpx.Client
) -> None:
    """An event that the asker may not see, or no longer, is like one that does not exist."""
    webhook = create_webhook(bob, receiver.url, "user:ada")
    create_repo(ada, "hidden", private=True)
    create_repo(ada, "tiny")
    settle(hub)
    hidden, tiny = (event_ids(ada, f"model:ada/{name}")[0] for name in ("hidden", "tiny"))
    path = f"{PATH}/{webhook['id']}/why-not"
    answers = [bob.get(path, params={"event": event}) for event in (hidden, "0" * 24, "x", "")]
    assert [answer.status_code for answer in answers] == [404] * 4
    assert len({answer.json()["error"] for answer in answers}) == 1
    assert why_not(bob, webhook, tiny) == ("delivered", None)
    ada.put("/api/models/ada/tiny/settings", json={"private": True})
    assert bob.get(path, params={"event": tiny}).status_code == 404
    # Published: events from before stay hidden.
    ada.put("/api/models/ada/hidden/settings", json={"private": False})
    assert bob.get(path, params={"event": hidden}).status_code == 404
    assert ada.get(path, params={"event": tiny}).status_code == 404, "not her webhook"


def test_why_not_explains_what_an_organization_may_not_read(
    hub: RunningHub, receiver: Receiver, user: User, ada: httpx.Client
) -> None:
    create_organization(hub, "acme", user)
    at = "/api/organizations/acme/settings/webhooks"
    webhook = ada.post(at, json={**body("user:ada"), "url": receiver.url}).json()["webhook"]
    create_repo(ada, "mine", private=True)
    settle(hub)
    (event,) = event_ids(ada, "user:ada")
    assert why_not(ada, webhook, event, at) == ("not_sent", "forbidden")
