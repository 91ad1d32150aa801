"""The scope write-discussions: requests that it permits by itself, and requests that need a scope for repos."""

from collections.abc import Iterator

import httpx
import pytest
from tests.bed.apps import Client, approve, create_app, pkce_pair, redirect_parameters, tokens_for
from tests.bed.people import api, browser_of, create_organization, create_token, create_user
from tests.bed.repos import create_repo, send_commit
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User

SCOPES = ("openid", "write-discussions", "read-repos", "write-repos")


@pytest.fixture
def ada(hub: RunningHub) -> User:
    user = create_user(hub, "ada")
    create_organization(hub, "acme", user)
    with api(hub, create_token(hub, user)) as client:
        for name in ("open", "secret", "acme/open", "acme/secret"):
            create_repo(client, name, private=name.endswith("secret"))
            at = f"/api/models/{name if '/' in name else f'ada/{name}'}/discussions"
            assert client.post(at, json={"title": "A question"}).status_code == 200
    return user


@pytest.fixture
def app(hub: RunningHub, ada: User) -> Client:
    return create_app(hub, scopes=SCOPES)


def with_scopes(app: Client, user: User, *scopes: str, organizations: tuple[str, ...] = ()) -> httpx.Client:
    if not organizations:
        return api(app.hub, tokens_for(app, user, scope=" ".join(("openid", *scopes)))["access_token"])
    verifier, challenge = pkce_pair()
    address = app.address(
        scope=" ".join(("openid", *scopes)), code_challenge=challenge, code_challenge_method="S256", prompt="consent"
    )
    with browser_of(app.hub, user) as browser:
        code = redirect_parameters(approve(browser, address, orgs=list(organizations)))["code"]
    return api(app.hub, app.redeem(code, code_verifier=verifier).json()["access_token"])


def requests_to(client: httpx.Client, repo: str) -> Iterator[httpx.Response]:
    at = f"/api/models/{repo}/discussions"
    yield client.post(at, json={"title": "Another"})
    yield client.post(at, json={"title": "A change", "pullRequest": True})
    yield client.post(f"{at}/1/comment", json={"comment": "hello"})


def statuses(client: httpx.Client, repo: str) -> list[int]:
    return [answer.status_code for answer in requests_to(client, repo)]


@pytest.mark.one_engine
def test_write_discussions_is_enough_for_public_repos_only(app: Client, ada: User) -> None:
    with with_scopes(app, ada, "write-discussions") as client:
        assert statuses(client, "ada/open") == [200, 200, 201]
        refused = list(requests_to(client, "ada/secret"))
        assert [answer.status_code for answer in refused] == [403] * 3
        for answer in refused:
            assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
            assert "read-repos" in answer.headers["x-error-message"]
        assert client.get("/api/models/ada/secret/discussions/1").status_code == 404, "the repo is hidden"
        assert send_commit(client, "ada/open", {"a.txt": b"a"}, query="?create_pr=1").status_code == 200
        assert send_commit(client, "ada/open", {"a.txt": b"a"}).status_code == 403


@pytest.mark.one_engine
def test_read_repos_is_needed_too_on_private_repos(app: Client, ada: User) -> None:
    with with_scopes(app, ada, "write-discussions", "read-repos") as client:
        assert statuses(client, "ada/secret") == [200, 200, 201]
        assert client.post("/api/models/ada/secret/discussions/1/status", json={"status": "closed"}).status_code == 200


@pytest.mark.one_engine
def test_other_scopes_do_not_permit_discussions(app: Client, ada: User) -> None:
    for scopes in ((), ("read-repos",), ("write-repos",)):
        with with_scopes(app, ada, *scopes) as client:
            assert statuses(client, "ada/open") == [403] * 3, scopes
            at = "/api/models/ada/open/discussions/1"
            assert client.post(f"{at}/status", json={"status": "closed"}).status_code == 403
            assert client.delete(at).status_code == 403


@pytest.mark.one_engine
def test_organization_has_to_be_granted(hub: RunningHub, app: Client, ada: User) -> None:
    """On a public repo anyone may comment; private repos and deletion need a grant for the organization."""
    acme = next(one["id"] for one in api_json(hub, ada, "/api/whoami-v2")["orgs"] if one["name"] == "acme")
    with with_scopes(app, ada, "write-discussions", "read-repos") as client:
        assert statuses(client, "acme/open") == [200, 200, 201]
        assert statuses(client, "acme/secret") == [404] * 3
    with with_scopes(app, ada, "write-discussions", "read-repos", organizations=(acme,)) as client:
        assert statuses(client, "acme/secret") == [200, 200, 201]
        assert client.delete("/api/models/acme/secret/discussions/1").status_code == 200


def api_json(hub: RunningHub, user: User, path: str) -> dict[str, list[dict[str, str]]]:
    with api(hub, create_token(hub, user)) as client:
        found: dict[str, list[dict[str, str]]] = client.get(path).json()
    return found
