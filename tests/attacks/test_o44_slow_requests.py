"""O44: permissions are checked when a request is complete; delaying the last byte does not preserve them."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.bed.apps import create_app, tokens_for
from tests.bed.exchange import create_exchange_app, exchange_token
from tests.bed.people import Page, api, browser_of, create_organization, create_token, create_user
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub
from tests.bed.slow_requests import SlowRequest, slow_json

from hubgate.server.accounts import operator_actions

FORM = "application/x-www-form-urlencoded"


@contextmanager
def slow_requests(hub: RunningHub, token: str, *asked: tuple[str, dict[str, Any]]) -> Iterator[list[SlowRequest]]:
    with ExitStack() as stack:
        begun = []
        for head, body in asked:
            sent = slow_json(hub, token, head, body)
            stack.callback(sent.close)
            begun.append(sent)
        yield begun


@pytest.mark.one_engine
def test_removed_member_cannot_complete_a_slow_request(hub: RunningHub) -> None:
    ada, eve = create_user(hub, "ada"), create_user(hub, "eve")
    create_organization(hub, "acme", ada, eve="write")
    with api(hub, create_token(hub, ada)) as admin, api(hub) as anyone:
        for name in ("one", "two", "three"):
            create_repo(admin, f"acme/{name}", private=True)
            create_commit(admin, f"acme/{name}", {"k": b"crown jewels"})
        asked: list[tuple[str, dict[str, Any]]] = [
            ("POST /api/repos/move", {"fromRepo": "acme/one", "toRepo": "eve/mine"}),
            ("DELETE /api/repos/delete", {"name": "two", "organization": "acme"}),
            ("PUT /api/models/acme/three/settings", {"visibility": "public"}),
            ("POST /api/repos/create", {"name": "planted", "organization": "acme"}),
            ("POST /api/models/acme/three/branch/evil", {"startingPoint": "main"}),
            ("POST /api/models/acme/three/tag/main", {"tag": "evil"}),
            ("POST /api/models/acme/three/super-squash/main", {"message": "gone"}),
            ("POST /api/models/acme/three/preupload/main", {"files": [{"path": "x", "size": 1, "sample": ""}]}),
        ]
        with slow_requests(hub, create_token(hub, eve), *asked) as begun:
            assert admin.delete("/api/organizations/acme/members/eve").status_code == 200
            assert {one.status() for one in begun} <= {403, 404}
        assert {repo["id"] for repo in admin.get("/api/models?author=acme").json()} == {
            f"acme/{name}" for name in ("one", "two", "three")
        }
        assert [ref["name"] for ref in admin.get("/api/models/acme/three/refs").json()["branches"]] == ["main"]
        assert anyone.get("/acme/three/resolve/main/k").status_code == 401


@pytest.mark.one_engine
@pytest.mark.parametrize("credential", ["personal", "app", "exchanged"])
def test_revoked_token_cannot_complete_a_slow_request(hub: RunningHub, credential: str) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    scopes = ("openid", "manage-repos")
    name = "acme/secret" if credential == "exchanged" else "ada/secret"
    client = create_app(hub, ada, scopes=scopes)
    if credential == "personal":
        token = create_token(hub, ada)
    elif credential == "app":
        token = tokens_for(client, ada, scope=" ".join(scopes))["access_token"]
    else:
        client = create_exchange_app(hub, acme, scopes=scopes)
        token = exchange_token(client, "ada@example.org")["access_token"]
    with api(hub, create_token(hub, ada, name="other")) as owner:
        create_repo(owner, name, private=True)
        with slow_requests(hub, token, (f"PUT /api/models/{name}/settings", {"visibility": "public"})) as (begun,):
            if credential == "personal":
                assert owner.post("/api/credentials/revoke", json={"credentials": [token]}).status_code == 202
            else:
                assert client.post("/oauth/revoke", {"token": token}).status_code == 200
            assert begun.status() == 401
        assert owner.get(f"/api/models/{name}").json()["private"] is True


@pytest.mark.one_engine
def test_form_of_a_disabled_user_is_rejected(hub: RunningHub) -> None:
    ada, eve = create_user(hub, "ada"), create_user(hub, "eve")
    create_organization(hub, "acme", ada, eve="admin")
    with api(hub, create_token(hub, ada)) as owner, browser_of(hub, eve) as browser:
        create_repo(owner, "acme/secret", private=True)
        action = "/acme/secret/settings/visibility"
        fields = {**Page(browser.get("/acme/secret/settings")).hidden(action), "visibility": "public"}
        cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        begun = SlowRequest(hub, f"POST {action}", urlencode(fields).encode(), cookie=cookies, content_type=FORM)
        hub.call(lambda opened: operator_actions.disable(opened.accounts, eve))
        assert begun.status() in (403, 404)
        begun.close()
        assert owner.get("/api/models/acme/secret").json()["private"] is True
