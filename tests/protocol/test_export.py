"""The account export also contains connected apps, own apps, repos, collections, comments and webhooks, and no
secrets.
"""

from pathlib import Path

import pytest
from tests.bed.apps import create_app, tokens_for
from tests.bed.collections import fill_collections
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.memory import watch_memory
from tests.bed.people import PASSWORD, api, browser_of, create_organization, create_token, create_user, submit
from tests.bed.processes import hub_process
from tests.bed.repos import create_repo
from tests.bed.resource_servers import register
from tests.bed.running_hub import RunningHub, run_hub
from tests.faults.conftest import create_store

MOST_ADDED = 40 * 1024 * 1024

SECRET = "a long webhook secret"


@pytest.mark.one_engine
def test_apps_repos_and_collections_are_in_the_export(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    theirs, own = create_app(hub, create_user(hub, "olga")), create_app(hub, ada, name="Mine")
    given, tools = tokens_for(theirs, ada), register(hub, ada)
    token = create_token(hub, ada)
    with api(hub, token) as script, browser_of(hub, ada) as browser:
        create_repo(script, "tiny", "dataset", private=True)
        slug = script.post("/api/collections", json={"title": "Mine", "private": True}).json()["slug"]
        item = {"item": {"type": "dataset", "id": "ada/tiny"}, "note": "Small"}
        assert script.post(f"/api/collections/{slug}/items", json=item).status_code == 200
        response = browser.get("/settings/export")
    said = response.json()
    (connected,) = said["connectedApps"]
    assert (connected["clientId"], set(connected["scopes"])) == (theirs.id, set(theirs.app.scopes))
    assert [(app["clientId"], app["name"]) for app in said["apps"]] == [(own.id, "Mine")]
    assert [(repo["type"], repo["id"], repo["private"]) for repo in said["repos"]] == [("dataset", "ada/tiny", True)]
    (collection,) = said["collections"]
    assert (collection["slug"], collection["items"][0]["note"]["text"]) == (slug, "Small")
    assert [server["identifier"] for server in said["resources"]] == [tools.identifier]
    for secret in (own.secret, tools.secret, given["access_token"], token):
        assert secret is not None
        assert secret not in response.text


@pytest.mark.one_engine
def test_export_names_a_requested_repo_while_the_user_may_see_it(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, bob)) as script:
        repo_id = create_repo(owner, "gated")["id"]
        assert owner.put("/api/models/ada/gated/settings", json={"gated": "manual"}).status_code == 200
        asked = script.post("/api/models/ada/gated/ask-access", json={"fields": {"Why": "Research"}})
        assert asked.status_code == 200
        with browser_of(hub, bob) as browser:
            (request,) = browser.get("/settings/export").json()["accessRequests"]
            assert (request["repo"], request["status"], request["fields"]) == (
                "ada/gated",
                "pending",
                {"Why": "Research"},
            )
            assert owner.put("/api/models/ada/gated/settings", json={"private": True}).status_code == 200
            (request,) = browser.get("/settings/export").json()["accessRequests"]
            assert (request["repo"], request["repoId"]) == (None, repo_id)


@pytest.mark.one_engine
def test_own_comments_are_in_the_export(hub: RunningHub) -> None:
    """Not those of others, not hidden ones, and none of repos that are private to others now."""
    ada, eve = create_user(hub, "ada"), create_user(hub, "eve")
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, eve)) as guest:
        for name in ("open", "closed"):
            create_repo(owner, name)
            at = f"/api/models/ada/{name}/discussions"
            assert guest.post(at, json={"title": "A question", "description": f"in {name}"}).status_code == 200
            for client, text in ((owner, "an answer"), (guest, "a typo")):
                comment = client.post(f"{at}/1/comment", json={"comment": text}).json()["newMessage"]["id"]
            assert guest.post(f"{at}/1/comment/{comment}/hide").status_code == 200
        assert owner.put("/api/models/ada/closed/settings", json={"private": True}).status_code == 200
    with browser_of(hub, eve) as browser:
        said = browser.get("/settings/export").json()
    (comment,) = said["comments"]
    assert (comment["repo"], comment["type"], comment["discussion"]) == ("ada/open", "model", 1)
    assert (comment["title"], comment["text"]) == ("A question", "in open")
    assert said["user"]["discussionMail"] is True


def test_memory_does_not_depend_on_the_number_of_items(sqlite_template: Path, tmp_path: Path) -> None:
    collections, items = 300, 300
    store = create_store(SqliteEngine(sqlite_template, tmp_path).fresh_url(), tmp_path)
    with run_hub(settings_for(store.url, store.folder / "data")) as prepared:
        eve = create_user(prepared, "eve")
        fill_collections(prepared, eve, collections, items, filled=collections)
    with (
        hub_process(tmp_path, *store.flags, "--deliver", "off") as process,
        process.client() as client,
        watch_memory(process.process.pid) as peaks,
    ):
        assert submit(client, "/login", username="eve", password=PASSWORD).status_code == 303
        peaks.measure(process.process.pid)
        before = peaks.highest
        response = client.get("/settings/export")
    assert [len(found["items"]) for found in response.json()["collections"]] == [items] * collections
    assert len(response.content) > MOST_ADDED, "one copy of the document would exceed the limit"
    assert peaks.highest - before < MOST_ADDED, peaks


def test_own_webhooks_are_in_the_export_without_secrets(hub: RunningHub) -> None:
    """Not those of the user's organizations: they are not the user's data."""
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as script, browser_of(hub, ada) as browser:
        body = {"url": "https://ci.example/hook", "watched": [{"type": "user", "name": "ada"}], "secret": SECRET}
        for at in ("/api/settings/webhooks", "/api/organizations/acme/settings/webhooks"):
            assert script.post(at, json=body).status_code == 200
        response = browser.get("/settings/export")
    (webhook,) = response.json()["webhooks"]
    assert (webhook["url"], webhook["hasSecret"]) == ("https://ci.example/hook", True)
    assert webhook["watched"] == [{"type": "user", "name": "ada"}]
    assert SECRET not in response.text


@pytest.mark.one_engine
def test_long_export_is_sent_in_parts(hub: RunningHub) -> None:
    """A part has 50 comments or one collection."""
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as script, browser_of(hub, ada) as browser:
        create_repo(script, "tiny")
        at = "/api/models/ada/tiny/discussions"
        for num in (1, 2):
            assert script.post(at, json={"title": "A question", "description": f"{num} 0"}).status_code == 200
            for number in range(1, 61):
                assert script.post(f"{at}/{num}/comment", json={"comment": f"{num} {number}"}).status_code == 201
        for number in range(3):
            assert script.post("/api/collections", json={"title": f"Collection {number}"}).status_code == 200
        response = browser.get("/settings/export")
    assert "content-length" not in response.headers
    said = response.json()
    assert [comment["text"] for comment in said["comments"]] == [f"{n} {i}" for n in (1, 2) for i in range(61)]
    assert sorted(found["title"] for found in said["collections"]) == [f"Collection {number}" for number in range(3)]
