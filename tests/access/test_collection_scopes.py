"""Collections over the wire with one token per scope, for the user's own collections and an organization's."""

import httpx
import pytest
from tests.bed.apps import create_app, token_of
from tests.bed.exchange import create_exchange_app, exchange_token
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub

SCOPES = ("openid", "read-repos", "manage-repos", "read-collections", "write-collections")


def create(client: httpx.Client, title: str, namespace: str, *, private: bool) -> str:
    body = {"title": title, "namespace": namespace, "private": private}
    response = client.post("/api/collections", json=body)
    assert response.status_code == 200, response.text
    slug: str = response.json()["slug"]
    return slug


def answers(hub: RunningHub, token: str, slug: str) -> dict[str, int]:
    with api(hub, token) as client:
        listed = [found["slug"] for found in client.get("/api/collections").json()]
        namespace = slug.split("/")[0]
        created = client.post("/api/collections", json={"title": f"By {token[-6:]}", "namespace": namespace})
        return {
            "get": client.get(f"/api/collections/{slug}").status_code,
            "listed": int(slug in listed),
            "create": created.status_code,
            "change": client.patch(f"/api/collections/{slug}", json={"theme": "blue"}).status_code,
        }


READ = {"get": 200, "listed": 1, "create": 403, "change": 403}
WRITE = {"get": 200, "listed": 1, "create": 200, "change": 200}
# A private collection that the token may not see looks as if it did not exist, but a missing scope is named.
NOTHING = {"get": 404, "listed": 0, "create": 403, "change": 403}
HIDDEN = {"get": 404, "listed": 0, "create": 403, "change": 404}


@pytest.mark.one_engine
def test_each_scope_permits_only_its_own_requests(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as client:
        own = create(client, "Own", "ada", private=True)
        shared = create(client, "Shared", "acme", private=True)
    app = create_app(hub, scopes=SCOPES)
    for scope, expected in (
        ("read-collections", READ),
        ("write-collections", WRITE),
        ("manage-repos", NOTHING),
        ("read-repos", NOTHING),
    ):
        assert answers(hub, token_of(app, ada, scope), own) == expected, scope
        # Without a grant of the organization, the token does not reach it.
        assert answers(hub, token_of(app, ada, scope), shared) == HIDDEN, scope
        assert answers(hub, token_of(app, ada, scope, acme), shared) == expected, scope


@pytest.mark.one_engine
def test_role_limits_the_scope(hub: RunningHub) -> None:
    ada, rob = create_user(hub, "ada"), create_user(hub, "rob")
    acme = create_organization(hub, "acme", ada, rob="read")
    with api(hub, create_token(hub, ada)) as client:
        shared = create(client, "Shared", "acme", private=True)
    app = create_app(hub, scopes=SCOPES)
    assert answers(hub, token_of(app, rob, "write-collections", acme), shared) == READ
    assert answers(hub, create_token(hub, ada, "read"), shared) == READ


@pytest.mark.one_engine
def test_exchanged_token_reads_public_collections_outside_its_organization(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada, plan="enterprise")
    with api(hub, create_token(hub, ada)) as client:
        inside = create(client, "Inside", "acme", private=True)
        public, private = (create(client, str(hidden), "ada", private=hidden) for hidden in (False, True))
    app = create_exchange_app(hub, acme, scopes=SCOPES)
    token = exchange_token(app, "ada@example.org")["access_token"]
    assert answers(hub, token, inside) == WRITE
    assert answers(hub, token, public) == READ
    assert answers(hub, token, private) == HIDDEN


@pytest.mark.one_engine
def test_item_needs_the_scope_that_sees_its_repo(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    app = create_app(hub, scopes=SCOPES)
    with api(hub, create_token(hub, ada)) as client:
        slug = create(client, "Own", "ada", private=True)
        assert client.post("/api/repos/create", json={"name": "secret", "private": True}).status_code == 200
    item = {"item": {"id": "ada/secret", "type": "model"}}
    with api(hub, token_of(app, ada, "write-collections")) as client:
        assert client.post(f"/api/collections/{slug}/items", json=item).status_code == 404
    with api(hub, token_of(app, ada, "write-collections read-repos")) as client:
        assert len(client.post(f"/api/collections/{slug}/items", json=item).json()["items"]) == 1
    with api(hub, token_of(app, ada, "write-collections")) as client:
        assert client.get(f"/api/collections/{slug}").json()["items"] == []
