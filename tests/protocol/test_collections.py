"""Collections in the API: creation, changes, items and their order, lists and filters, visibility."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
import pytest
from tests.bed.collections import fill_collections
from tests.bed.concurrency import run_concurrently
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import own_account
from hubgate.server.accounts.model import User
from hubgate.server.audit.model import SYSTEM
from hubgate.server.hub.collections.model import MAX_COLLECTIONS, MAX_ITEMS


@dataclass
class Scene:
    """Ada, who owns acme, where Rob has the read role; Bob is a stranger."""

    hub: RunningHub
    owner: User
    ada: httpx.Client
    rob: httpx.Client
    bob: httpx.Client
    visitor: httpx.Client


@pytest.fixture
def scene(hub: RunningHub) -> Iterator[Scene]:
    ada, rob, bob = (create_user(hub, name) for name in ("ada", "rob", "bob"))
    create_organization(hub, "acme", ada, rob="read")
    clients = [api(hub, create_token(hub, user)) for user in (ada, rob, bob)]
    with clients[0], clients[1], clients[2], api(hub) as visitor:
        yield Scene(hub, ada, *clients, visitor)


def create(client: httpx.Client, title: str = "Small models", **more: Any) -> dict[str, Any]:
    response = client.post("/api/collections", json={"title": title, **more})
    assert response.status_code == 200, response.text
    created: dict[str, Any] = response.json()
    return created


def add(client: httpx.Client, slug: str, name: str, kind: str = "model", **more: Any) -> httpx.Response:
    return client.post(f"/api/collections/{slug}/items", json={"item": {"id": name, "type": kind}, **more})


def get(client: httpx.Client, slug: str) -> dict[str, Any]:
    response = client.get(f"/api/collections/{slug}")
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def names(found: dict[str, Any]) -> list[tuple[int, str]]:
    return [(item["position"], item["id"]) for item in found["items"]]


def titles(client: httpx.Client, query: str = "") -> list[str]:
    response = client.get(f"/api/collections{query}")
    assert response.status_code == 200, response.text
    return [found["title"] for found in response.json()]


@pytest.mark.one_engine
def test_collection_has_every_field_that_clients_read(scene: Scene) -> None:
    found = create(scene.ada, "Tiny & Über models!", namespace="acme", description="Fast <b>ones</b>")
    collection_id = found["slug"][-24:]
    assert found["slug"] == f"acme/tiny-uber-models-{collection_id}"
    assert found["owner"]["name"] == "acme"
    assert found["owner"]["type"] == "org"
    fields = {name: found[name] for name in ("title", "description", "theme", "private", "upvotes", "gating", "items")}
    assert fields == {
        "title": "Tiny & Über models!",
        "description": "Fast <b>ones</b>",
        "theme": "orange",
        "private": False,
        "upvotes": 0,
        "gating": False,
        "items": [],
    }
    assert found["shareUrl"] == f"{scene.hub.url}/collections/{found['slug']}"
    assert found["lastUpdated"].endswith("Z")
    assert get(scene.visitor, found["slug"]) == found
    assert create(scene.ada, "漢字")["slug"].count("-") == 0


@pytest.mark.one_engine
def test_title_is_unique_for_an_owner(scene: Scene) -> None:
    first = create(scene.ada)
    again = scene.ada.post("/api/collections", json={"title": " small  MODELS "})
    assert (again.status_code, again.json()["slug"]) == (409, first["slug"])
    create(scene.ada, namespace="acme")
    other = create(scene.ada, "Large models")
    taken = scene.ada.patch(f"/api/collections/{other['slug']}", json={"title": "Small models"})
    assert (taken.status_code, taken.json()["slug"]) == (409, first["slug"])


def test_concurrent_creations_of_a_title_create_one_collection(scene: Scene) -> None:
    def attempt() -> int:
        return scene.ada.post("/api/collections", json={"title": "Small models"}).status_code

    assert sorted(run_concurrently([attempt] * 5)) == [200, 409, 409, 409, 409]
    assert titles(scene.ada) == ["Small models"]


@pytest.mark.one_engine
def test_changes_are_saved_and_old_slugs_stay_valid(scene: Scene) -> None:
    slug = create(scene.ada)["slug"]
    body = {"title": "Renamed", "description": "Now described", "private": True, "theme": "pink"}
    changed = scene.ada.patch(f"/api/collections/{slug}", json=body)
    assert changed.status_code == 200, changed.text
    assert changed.json()["success"] is True
    found = changed.json()["data"]
    assert {name: found[name] for name in body} == body
    assert found["slug"] == f"ada/renamed-{slug[-24:]}"
    assert get(scene.ada, slug) == get(scene.ada, found["slug"]) == found
    assert get(scene.ada, f"ada/{slug[-24:]}") == found
    assert scene.ada.get(f"/api/collections/bob/renamed-{slug[-24:]}").status_code == 404


@pytest.mark.one_engine
def test_old_name_of_the_owner_stays_valid(scene: Scene) -> None:
    slug = create(scene.ada)["slug"]
    scene.hub.clock.advance(24 * 3600)
    create_repo(scene.ada, "ada/keeps-the-name")
    scene.hub.call(lambda opened: own_account.rename(opened.accounts, scene.owner, "ada2"))
    assert get(scene.visitor, slug)["slug"].startswith("ada2/")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"title": "  "},
        {"title": "x" * 101},
        {"title": "x", "description": "x" * 151},
        {"title": "x", "theme": "red"},
        {"title": "a\0b"},
        {"title": 3},
    ],
)
@pytest.mark.one_engine
def test_invalid_collections_are_rejected(scene: Scene, body: dict[str, Any]) -> None:
    assert scene.ada.post("/api/collections", json=body).status_code == 422


@pytest.mark.one_engine
@pytest.mark.parametrize("position", [2**31, 2**63, 2**64 - 1, 10**30])
def test_position_beyond_the_end_is_the_end(scene: Scene, position: int) -> None:
    """Also a position that is larger than the index of any list."""
    first, second = create(scene.ada, "First")["slug"], create(scene.ada, "Second")["slug"]
    for name in ("one", "two"):
        create_repo(scene.ada, name)
        add(scene.ada, second, f"ada/{name}")
    moved = scene.ada.patch(f"/api/collections/{first}", json={"position": position})
    assert (moved.status_code, moved.json()["data"]["position"]) == (200, 1), moved.text
    item = get(scene.ada, second)["items"][0]["_id"]
    assert scene.ada.patch(f"/api/collections/{second}/items/{item}", json={"position": position}).status_code == 200
    assert names(get(scene.ada, second)) == [(0, "ada/two"), (1, "ada/one")]
    assert scene.ada.patch(f"/api/collections/{first}", json={"position": -position}).status_code == 422


def test_items_are_added_changed_reordered_and_removed(scene: Scene) -> None:
    for name, kind in (("one", "model"), ("two", "dataset"), ("three", "space")):
        create_repo(scene.ada, name, kind)
    slug, other = create(scene.ada)["slug"], create(scene.ada, "Others")["slug"]
    assert add(scene.ada, slug, "ada/one", note="Try <this>").json()["items"][0]["note"] == {
        "text": "Try <this>",
        "html": "Try &lt;this&gt;",
    }
    assert add(scene.ada, slug, "ada/two", "dataset").status_code == 200
    assert add(scene.ada, slug, "ada/three", "space").status_code == 200
    found = add(scene.ada, slug, other, "collection").json()
    assert names(found) == [(0, "ada/one"), (1, "ada/two"), (2, "ada/three"), (3, other[-24:])]
    assert [item["type"] for item in found["items"]] == ["model", "dataset", "space", "collection"]
    assert found["items"][3]["slug"] == other
    assert {"author", "private", "gated", "likes", "lastModified"} <= set(found["items"][0])
    for name, kind in (("ada/one", "model"), (other[-24:], "collection")):
        assert add(scene.ada, slug, name, kind).status_code == 409

    at = f"/api/collections/{slug}/items/"
    first, second, third, fourth = (item["_id"] for item in found["items"])
    assert scene.ada.patch(at + first, json={"position": 2}).status_code == 200
    assert scene.ada.patch(at + fourth, json={"position": 0, "note": "First"}).status_code == 200
    assert scene.ada.patch(at + second, json={"position": 99}).status_code == 200
    assert [item["_id"] for item in get(scene.ada, slug)["items"]] == [fourth, third, first, second]
    assert scene.ada.patch(at + first, json={"note": ""}).status_code == 200
    assert [item.get("note", {}).get("text") for item in get(scene.ada, slug)["items"]] == ["First", None, None, None]
    assert scene.ada.delete(at + third).status_code == 200
    assert scene.ada.delete(at + third).status_code == 404
    assert scene.ada.patch(at + third, json={"note": "x"}).status_code == 404
    assert names(get(scene.ada, slug)) == [(0, other[-24:]), (1, "ada/one"), (2, "ada/two")]


@pytest.mark.one_engine
def test_invalid_items_are_rejected(scene: Scene) -> None:
    create_repo(scene.ada, "one")
    slug = create(scene.ada)["slug"]
    for name, kind, status in (
        ("ada/absent", "model", 404),
        ("ada/one", "dataset", 404),
        ("one", "model", 404),
        ("2307.09288", "paper", 404),
        ("ada/files", "bucket", 404),
        ("ada/x-" + "0" * 24, "collection", 404),
        ("ada/one", "picture", 422),
    ):
        assert add(scene.ada, slug, name, kind).status_code == status, (name, kind)
    assert add(scene.ada, slug, "ada/one", note="x" * 501).status_code == 422
    item = add(scene.ada, slug, "ada/one").json()["items"][0]["_id"]
    assert scene.ada.patch(f"/api/collections/{slug}/items/{item}", json={"position": -1}).status_code == 422


@pytest.mark.one_engine
def test_item_follows_its_repo(scene: Scene) -> None:
    for name in ("one", "two"):
        create_repo(scene.ada, name)
    slug = create(scene.ada)["slug"]
    for name in ("ada/one", "ada/two"):
        add(scene.ada, slug, name)
    moved = scene.ada.post("/api/repos/move", json={"fromRepo": "ada/two", "toRepo": "acme/moved"})
    assert moved.status_code == 200
    assert names(get(scene.visitor, slug)) == [(0, "ada/one"), (1, "acme/moved")]
    assert scene.ada.request("DELETE", "/api/repos/delete", json={"name": "ada/one"}).status_code == 200
    assert names(get(scene.visitor, slug)) == [(0, "acme/moved")]
    linked = create(scene.ada, "Others")["slug"]
    add(scene.ada, slug, linked, "collection")
    assert scene.ada.delete(f"/api/collections/{linked}").status_code == 200
    assert names(get(scene.visitor, slug)) == [(0, "acme/moved")]


@pytest.mark.one_engine
def test_private_items_are_hidden_from_others(scene: Scene) -> None:
    create_repo(scene.ada, "open")
    create_repo(scene.ada, "secret", private=True)
    create_repo(scene.ada, "acme/inner", private=True)
    slug, hidden = create(scene.ada)["slug"], create(scene.ada, "Hidden", private=True)["slug"]
    for name in ("ada/secret", "acme/inner", "ada/open"):
        assert add(scene.ada, slug, name).status_code == 200
    assert add(scene.ada, slug, hidden, "collection").status_code == 200
    everything = [(0, "ada/secret"), (1, "acme/inner"), (2, "ada/open"), (3, hidden[-24:])]
    assert names(get(scene.ada, slug)) == everything
    # Positions do not reveal that items are missing.
    assert names(get(scene.rob, slug)) == [(0, "acme/inner"), (1, "ada/open")]
    for caller in (scene.bob, scene.visitor):
        assert names(get(caller, slug)) == [(0, "ada/open")]
        (listed,) = caller.get("/api/collections?owner=ada").json()
        assert names(listed) == [(0, "ada/open")]
    # Others cannot find out which private repos exist.
    his = create(scene.bob)["slug"]
    secret, absent = (add(scene.bob, his, name) for name in ("ada/secret", "ada/absent"))
    assert (secret.status_code, secret.text) == (absent.status_code, absent.text)
    assert secret.status_code == 404
    assert titles(scene.bob, "?item=models/ada/secret") == titles(scene.bob, "?item=models/ada/absent") == []
    assert titles(scene.ada, "?item=models/ada/secret") == ["Small models"]


@pytest.mark.one_engine
def test_reordering_leaves_items_that_the_caller_cannot_see_in_place(scene: Scene) -> None:
    wim = create_user(scene.hub, "wim")
    create_organization(scene.hub, "club", wim, ada="write")
    for name in ("ada/secret", "ada/a", "ada/b", "ada/c"):
        create_repo(scene.ada, name, private=name == "ada/secret")
    slug = create(scene.ada, namespace="club")["slug"]
    for name in ("ada/a", "ada/secret", "ada/b", "ada/c"):
        add(scene.ada, slug, name)
    with api(scene.hub, create_token(scene.hub, wim)) as client:
        seen = get(client, slug)["items"]
        assert [item["id"] for item in seen] == ["ada/a", "ada/b", "ada/c"]
        at = f"/api/collections/{slug}/items/"
        assert client.patch(at + seen[2]["_id"], json={"position": 1}).status_code == 200
        assert [item["id"] for item in get(client, slug)["items"]] == ["ada/a", "ada/c", "ada/b"]
        secret = get(scene.ada, slug)["items"][1]
        assert secret["id"] == "ada/secret"
        assert client.delete(at + secret["_id"]).status_code == 404


@pytest.mark.one_engine
def test_private_collections_are_hidden_from_others(scene: Scene) -> None:
    own, shared = create(scene.ada, private=True)["slug"], create(scene.ada, "Ours", namespace="acme", private=True)
    assert get(scene.rob, shared["slug"])["private"] is True
    assert titles(scene.rob) == ["Ours"]
    assert sorted(titles(scene.ada)) == ["Ours", "Small models"]
    for slug in (own, shared["slug"], f"ada/absent-{'0' * 24}", "nobody/x"):
        assert scene.bob.get(f"/api/collections/{slug}").status_code == 404
        assert scene.visitor.get(f"/api/collections/{slug}").status_code == 401
        assert scene.bob.patch(f"/api/collections/{slug}", json={"title": "Taken"}).status_code == 404
    assert titles(scene.bob) == titles(scene.visitor) == []
    assert scene.rob.patch(f"/api/collections/{shared['slug']}", json={"title": "Taken"}).status_code == 403
    assert scene.rob.post("/api/collections", json={"title": "x", "namespace": "acme"}).status_code == 403
    for namespace in ("ada", "nobody"):
        assert scene.bob.post("/api/collections", json={"title": "x", "namespace": namespace}).status_code == 403


def test_place_among_the_owners_collections_is_changed(scene: Scene) -> None:
    slugs = [create(scene.ada, title, private=title == "b")["slug"] for title in ("a", "b", "c")]
    assert [get(scene.ada, slug)["position"] for slug in slugs] == [0, 1, 2]
    assert get(scene.visitor, slugs[2])["position"] == 1
    moved = scene.ada.patch(f"/api/collections/{slugs[2]}", json={"position": 0})
    assert moved.json()["data"]["position"] == 0
    assert [get(scene.ada, slug)["position"] for slug in slugs] == [1, 2, 0]
    assert scene.ada.patch(f"/api/collections/{slugs[2]}", json={"position": -1}).status_code == 422


def test_lists_are_filtered_and_paged(scene: Scene) -> None:
    create_repo(scene.ada, "one")
    for title, owner in (("Tiny ÄRGER", "ada"), ("Large", "acme"), ("Other", "bob")):
        slug = create(scene.bob if owner == "bob" else scene.ada, title, namespace=owner)["slug"]
        scene.hub.clock.advance(1)
        if owner == "acme":
            add(scene.ada, slug, "ada/one")
    assert titles(scene.visitor) == ["Other", "Large", "Tiny ÄRGER"]
    assert titles(scene.visitor, "?owner=ADA&owner=bob&sort=upvotes") == ["Other", "Tiny ÄRGER"]
    assert titles(scene.visitor, "?owner=nobody") == []
    assert titles(scene.visitor, "?q=ärger") == ["Tiny ÄRGER"]
    assert titles(scene.visitor, "?q=100%25") == []
    assert titles(scene.visitor, "?item=models/ada/one") == ["Large"]
    assert scene.visitor.get("/api/collections?sort=best").status_code == 400
    assert scene.visitor.get("/api/collections?" + "owner=x&" * 21).status_code == 400
    page = scene.visitor.get("/api/collections?limit=2&sort=trending")
    assert "position" not in page.json()[0]
    following = scene.visitor.get(page.links["next"]["url"])
    assert [found["title"] for found in page.json() + following.json()] == ["Other", "Large", "Tiny ÄRGER"]
    assert "next" not in following.links


@pytest.mark.one_engine
def test_list_shows_the_first_four_items(scene: Scene) -> None:
    slug = create(scene.ada)["slug"]
    for number in range(6):
        create_repo(scene.ada, f"r{number}")
        add(scene.ada, slug, f"ada/r{number}")
    (listed,) = scene.visitor.get("/api/collections").json()
    assert names(listed) == [(number, f"ada/r{number}") for number in range(4)]
    assert len(get(scene.visitor, slug)["items"]) == 6


def test_lists_of_full_collections_are_bounded(scene: Scene) -> None:
    eve = create_user(scene.hub, "eve")
    ids = fill_collections(scene.hub, eve, MAX_COLLECTIONS, MAX_ITEMS, filled=3)
    listed, address = [], "/api/collections?limit=1000"
    while address:
        page = scene.visitor.get(address)
        assert len(page.json()) <= 100
        listed += page.json()
        address = page.links.get("next", {}).get("url", "")
    # Last changed first: the three with items are the last ones.
    assert [found["slug"][-24:] for found in listed] == ids[::-1]
    assert [len(found["items"]) for found in listed[-4:]] == [0, 4, 4, 4]
    at = f"/api/collections/{listed[-1]['slug']}"
    assert [item["id"] for item in scene.visitor.get(at).json()["items"]] == ids
    with api(scene.hub, create_token(scene.hub, eve)) as client:
        create_repo(client, "tiny")
        full, another = (
            add(client, listed[-1]["slug"], "eve/tiny"),
            client.post("/api/collections", json={"title": "x"}),
        )
    for refused in (full, another):
        assert refused.status_code == 422
        assert "1,000" in refused.json()["error"]


@pytest.mark.one_engine
def test_organization_logs_its_collections(scene: Scene) -> None:
    slug = create(scene.ada, namespace="acme")["slug"]
    scene.hub.clock.advance(1)
    scene.ada.patch(f"/api/collections/{slug}", json={"private": True, "theme": "orange"})
    scene.hub.clock.advance(1)
    assert scene.ada.delete(f"/api/collections/{slug}").status_code == 200
    assert scene.ada.delete(f"/api/collections/{slug}").status_code == 404
    log = scene.ada.get("/api/organizations/acme/audit-log/export").json()
    found = [(entry["type"], entry["message"]) for entry in log if entry["type"].startswith("collection.")]
    assert found == [
        ("collection.delete", "deleted the collection Small models"),
        ("collection.update", "changed the collection Small models: private"),
        ("collection.create", "created the collection Small models"),
    ]
    assert log[0]["data"]["collectionId"] == slug[-24:]


@pytest.mark.one_engine
def test_collections_of_a_deleted_owner_are_deleted(scene: Scene) -> None:
    wim = create_user(scene.hub, "wim")
    with api(scene.hub, create_token(scene.hub, wim)) as client:
        slug, other = create(client, "Deleted")["slug"], create(scene.bob)["slug"]
    add(scene.bob, other, slug, "collection")
    scene.hub.call(lambda opened: own_account.delete(opened.accounts, wim, SYSTEM))
    assert get(scene.visitor, other)["items"] == []
    assert titles(scene.visitor) == ["Small models"]


def test_concurrent_changes_of_items_end_consistently(scene: Scene) -> None:
    slug = create(scene.ada)["slug"]
    for number in range(8):
        create_repo(scene.ada, f"r{number}")

    def attempt(number: int) -> int:
        status = add(scene.ada, slug, f"ada/r{number}").status_code
        found = get(scene.ada, slug)["items"]
        scene.ada.patch(f"/api/collections/{slug}/items/{found[-1]['_id']}", json={"position": 0})
        return status

    assert run_concurrently([partial(attempt, number) for number in range(8)]) == [200] * 8
    found = get(scene.ada, slug)["items"]
    assert sorted(item["id"] for item in found) == [f"ada/r{number}" for number in range(8)]
    assert [item["position"] for item in found] == list(range(8))
