"""Fine-grained tokens: what they reach, what existing clients read about them, and the form that creates them."""

import re

import httpx
import pytest
from tests.bed.people import (
    Page,
    api,
    browser_of,
    create_limited_token,
    create_organization,
    create_token,
    create_user,
)
from tests.bed.processes import until
from tests.bed.repos import create_commit, create_repo, send_commit
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import members
from hubgate.server.accounts.roles import Role
from hubgate.server.accounts.tokens import personal
from hubgate.server.accounts.tokens.limits import ORG, REPO, NewLimit, own_account
from hubgate.server.accounts.tokens.model import MAX_PLACES_PER_USER
from hubgate.server.audit.model import SYSTEM
from hubgate.server.resources import Hub
from hubgate.server.storage.sqltext import Params

WHOAMI, TOKENS, FORM = "/api/whoami-v2", "/settings/tokens", "/settings/tokens/fine-grained"
MODELS = "/api/models"


def repo_id(client: httpx.Client, name: str) -> str:
    found: str = client.get(f"{MODELS}/{name}").json()["_id"]
    return found


def in_org(organization: Organization, *scopes: str) -> NewLimit:
    return NewLimit(ORG, organization.id, organization.id, frozenset(scopes))


def listed(client: httpx.Client) -> set[str]:
    return {repo["id"] for repo in client.get(MODELS).json()}


def test_token_for_one_repo_reaches_only_that_repo(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as owner:
        for name in ("chosen", "other"):
            create_repo(owner, f"ada/{name}", private=True)
        place = NewLimit(REPO, repo_id(owner, "ada/chosen"), ada.id, frozenset({"write-repos"}))
        text, _ = create_limited_token(hub, ada, places=[place])
        with api(hub, text) as token:
            assert listed(token) == {"ada/chosen"}
            create_commit(token, "ada/chosen", {"a.txt": b"a"})
            assert send_commit(token, "ada/other", {"a.txt": b"a"}).status_code == 404
            assert token.get(f"{MODELS}/ada/other").headers["x-error-code"] == "RepoNotFound"
            for refused in (
                token.post("/api/repos/create", json={"name": "new"}),
                token.put(f"{MODELS}/ada/chosen/settings", json={"private": False}),
                token.post("/api/repos/move", json={"fromRepo": "ada/chosen", "toRepo": "ada/moved"}),
                token.post("/api/collections", json={"title": "Plans", "namespace": "ada"}),
                token.get("/api/settings/webhooks"),
                token.get("/api/settings/tokens"),
            ):
                assert refused.status_code == 403, refused.url
            # The owner renames it: the token has its id, not its name.
            owner.post("/api/repos/move", json={"fromRepo": "ada/chosen", "toRepo": "ada/renamed"})
            assert listed(token) == {"ada/renamed"}
            owner.request("DELETE", "/api/repos/delete", json={"name": "renamed"})
            create_repo(owner, "ada/renamed", private=True)
            assert listed(token) == set()


@pytest.mark.one_engine
def test_scopes_apply_where_they_were_chosen(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme, club = create_organization(hub, "acme", ada), create_organization(hub, "club", ada)
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, bob)) as stranger:
        for name in ("ada/secret", "acme/secret", "club/secret"):
            create_repo(owner, name, private=True)
        create_repo(stranger, "bob/open")
    text, _ = create_limited_token(
        hub,
        ada,
        ["write-discussions"],
        [in_org(acme, "read-repos"), in_org(club, "manage-repos"), own_account(ada, ["read-billing"])],
    )
    with api(hub, text) as token:
        assert listed(token) == {"acme/secret", "club/secret", "bob/open"}
        assert send_commit(token, "acme/secret", {"a.txt": b"a"}).status_code == 403
        assert send_commit(token, "club/secret", {"a.txt": b"a"}).status_code == 200
        assert send_commit(token, "ada/secret", {"a.txt": b"a"}).status_code == 404
        for namespace, status in (("acme", 403), ("club", 200), (None, 403)):
            sent = token.post("/api/repos/create", json={"name": "new", "organization": namespace})
            assert sent.status_code == status, sent.text
        said = token.post(f"{MODELS}/bob/open/discussions", json={"title": "Hello"})
        assert said.status_code == 200, "everywhere, also on repos of others"
        assert "canPay" in token.get(WHOAMI).json()
        assert "email" not in token.get(WHOAMI).json()


@pytest.mark.one_engine
def test_scope_everywhere_does_not_moderate_where_the_token_has_another_scope(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada)
    at = f"{MODELS}/acme/open/discussions"
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, bob)) as stranger:
        create_repo(owner, "acme/open")
        for title in ("First", "Second"):
            assert stranger.post(at, json={"title": title}).status_code == 200

    def moderate(token: httpx.Client) -> list[httpx.Response]:
        return [
            token.post(f"{at}/1/pin", json={"pinned": True}),
            token.post(f"{at}/1/status", json={"status": "closed"}),
            token.delete(f"{at}/2"),
        ]

    text, _ = create_limited_token(hub, ada, ["write-discussions"], [in_org(acme, "jobs")])
    with api(hub, text) as token:
        said = token.post(at, json={"title": "Hello"})
        assert said.status_code == 200
        assert token.post(f"{at}/1/comment", json={"comment": "Hello"}).status_code == 201
        for refused in moderate(token):
            assert refused.status_code == 403, refused.text
            assert "Create a token that has it for this place." in refused.text
        own = token.post(f"{at}/{said.json()['num']}/status", json={"status": "closed"})
        assert own.status_code == 200, "its own discussion"
    text, _ = create_limited_token(hub, ada, places=[in_org(acme, "write-discussions")])
    with api(hub, text) as token:
        assert [answer.status_code for answer in moderate(token)] == [200, 200, 200]


@pytest.mark.one_engine
def test_token_that_may_not_moderate_reopens_only_what_its_user_closed(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_organization(hub, "acme", ada, bob="write")
    at = f"{MODELS}/acme/open/discussions"
    text, _ = create_limited_token(hub, bob, ["write-discussions"])
    with (
        api(hub, create_token(hub, ada)) as admin,
        api(hub, create_token(hub, bob)) as writer,
        api(hub, text) as token,
    ):
        create_repo(admin, "acme/open")
        assert token.post(at, json={"title": "Hello"}).status_code == 200
        for closing, reopening, status in ((token, token, 200), (admin, token, 403), (admin, writer, 200)):
            closing.post(f"{at}/1/status", json={"status": "closed"})
            reopened = reopening.post(f"{at}/1/status", json={"status": "open"})
            assert reopened.status_code == status, reopened.text


@pytest.mark.one_engine
def test_whoami_describes_the_limits(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    create_organization(hub, "club", ada)
    with api(hub, create_token(hub, ada)) as owner:
        create_repo(owner, "ada/data", "dataset", private=True)
        dataset = owner.get("/api/datasets/ada/data").json()["_id"]
    places = [
        in_org(acme, "read-repos", "webhooks"),
        NewLimit(REPO, dataset, ada.id, frozenset({"write-repos"})),
        own_account(ada, ["jobs"]),
    ]
    expires_at = hub.clock() + 86_400_000_000
    text, created = create_limited_token(hub, ada, ["profile", "gated-repos"], places, expires_at=expires_at)
    with api(hub, text) as token:
        said = token.get(WHOAMI).json()
    auth = said["auth"]
    assert (auth["type"], auth["accessToken"]["role"]) == ("access_token", "fineGrained")
    assert auth["accessToken"]["displayName"] == "limited"
    assert auth["expiresAt"].endswith("Z")
    limits = auth["accessToken"]["fineGrained"]
    assert limits["global"] == ["gated-repos", "profile"]
    assert limits["canReadGatedRepos"] is True
    assert sorted(limits["scoped"], key=lambda each: each["entity"]["type"]) == [
        {"entity": {"_id": dataset, "name": "ada/data", "type": "dataset"}, "permissions": ["write-repos"]},
        {"entity": {"_id": acme.id, "name": "acme", "type": "org"}, "permissions": ["webhooks", "read-repos"]},
        {"entity": {"_id": ada.id, "name": "ada", "type": "user"}, "permissions": ["jobs"]},
    ]
    assert [org["name"] for org in said["orgs"]] == ["acme"]
    assert said["fullname"] == "ada"
    assert "email" not in said
    with api(hub, create_token(hub, ada, "read")) as owner:
        until(lambda: owner.get(f"/api/settings/tokens/{created.id}").json()["lastUsedIp"] == "127.0.0.1")
        (shown,) = [each for each in owner.get("/api/settings/tokens").json() if each["id"] == created.id]
        assert shown["fineGrained"] == limits
        assert shown["expiresAt"] == auth["expiresAt"]
        assert shown == owner.get(f"/api/settings/tokens/{created.id}").json()


def test_member_who_left_and_joined_again_needs_a_new_token(hub: RunningHub) -> None:
    """Attack O66, for tokens of the member."""
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="write")
    with api(hub, create_token(hub, ada)) as owner:
        create_repo(owner, "acme/secret", private=True)
        place = NewLimit(REPO, repo_id(owner, "acme/secret"), acme.id, frozenset({"read-repos"}))
    tokens = [create_limited_token(hub, bob, places=[each])[0] for each in (place, in_org(acme, "read-repos"))]

    def seen() -> list[set[str]]:
        found = []
        for text in tokens:
            with api(hub, text) as token:
                limits = token.get(WHOAMI).json()["auth"]["accessToken"]["fineGrained"]["scoped"]
                found.append(listed(token) | {limit["entity"]["name"] for limit in limits})
        return found

    assert seen() == [{"acme/secret"}, {"acme/secret", "acme"}]

    async def leave(opened: Hub) -> None:
        await members.remove(opened.accounts, acme, bob, SYSTEM)

    async def join(opened: Hub) -> None:
        await members.add(opened.accounts, acme, bob, Role.ADMIN, SYSTEM)

    hub.call(leave)
    assert seen() == [set(), set()], "not even the name of the repo"
    hub.call(join)
    assert seen() == [set(), set()]


@pytest.mark.one_engine
def test_token_loses_a_repo_that_moves_to_another_organization(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    # Memberships that began at different times.
    hub.clock.advance(1)
    create_organization(hub, "club", ada)
    with api(hub, create_token(hub, ada)) as owner:
        create_repo(owner, "acme/secret", private=True)
        place = NewLimit(REPO, repo_id(owner, "acme/secret"), acme.id, frozenset({"manage-repos"}))
        text, _ = create_limited_token(hub, ada, places=[place])
        with api(hub, text) as token:
            for target in ("club/taken", "ada/taken"):
                moved = token.post("/api/repos/move", json={"fromRepo": "acme/secret", "toRepo": target})
                assert moved.status_code == 403, "it may not create repos there"
            owner.post("/api/repos/move", json={"fromRepo": "acme/secret", "toRepo": "club/secret"})
            assert listed(token) == set()
            for name in ("acme/secret", "club/secret"):
                assert send_commit(token, name, {"a.txt": b"a"}).status_code == 404
            assert token.get(WHOAMI).json()["auth"]["accessToken"]["fineGrained"]["scoped"] == []


def fill(client: httpx.Client, **fields: str | list[str]) -> httpx.Response:
    return client.post(FORM, data={**Page(client.get(FORM)).hidden(FORM), "name": "ci", **fields})


def secret_in(response: httpx.Response) -> str:
    (found,) = re.findall(r'value="(hf_[0-9A-Za-z]+)"', response.text)
    assert isinstance(found, str)
    return found


def tokens_of(hub: RunningHub, user: User) -> list[str]:
    return [token.name for token in hub.call(lambda opened: personal.of_user(opened.accounts, user.id))]


@pytest.mark.one_engine
def test_form_creates_a_token_that_expires_in_90_days(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as owner:
        for name in ("acme/a", "ada/b"):
            create_repo(owner, name, private=True)
    with browser_of(hub, ada) as browser:
        assert FORM in browser.get(TOKENS).text
        shown = browser.get(FORM).text
        assert '<option value="90" selected>' in shown
        assert "<script" not in shown[shown.index("<form") :].partition("</form>")[0]
        created = fill(browser, orgs=acme.id, org_scopes=["read-repos"], repos="ada/b\n", repo_scopes=["write-repos"])
        assert created.headers["cache-control"] == "no-store"
        text = secret_in(created)
        with api(hub, text) as token:
            assert listed(token) == {"acme/a", "ada/b"}
            said = token.get(WHOAMI).json()["auth"]
        (found,) = [t for t in hub.call(lambda opened: personal.of_user(opened.accounts, ada.id)) if t.name == "ci"]
        assert found.expires_at == found.created_at + 90 * 86_400_000_000
        page = browser.get(f"{TOKENS}/{found.id}").text
        for part in ("fine-grained", "Organization acme", "Model ada/b", "read-repos", "Expires"):
            assert part in page
        assert "fine-grained" in browser.get(TOKENS).text
        assert said["accessToken"]["fineGrained"]["global"] == []
        export = browser.get("/settings/export").json()
        assert {token["name"]: token["role"] for token in export["tokens"]}["ci"] == "fineGrained"


@pytest.mark.one_engine
@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"everywhere": []}, "scopes"),
        ({"everywhere": ["read-repos"]}, "scopes"),
        ({"own": ["openid"]}, "scopes"),
        ({"orgs": "ACME"}, "org_scopes"),
        ({"org_scopes": ["read-repos"]}, "orgs"),
        ({"repos": "ada/b"}, "repo_scopes"),
        ({"repo_scopes": ["read-repos"]}, "repos"),
        ({"repos": "bob/secret", "repo_scopes": ["read-repos"]}, "repos"),
        ({"repos": "x", "repo_scopes": ["read-repos"]}, "repos"),
        ({"repos": "kernels/ada/b", "repo_scopes": ["read-repos"]}, "repos"),
        ({"own": ["jobs"], "name": ""}, "name"),
        ({"own": ["jobs"], "expires": "8"}, "expires"),
        ({"own": ["jobs"], "expires": "date"}, "expires_on"),
        ({"own": ["jobs"], "expires": "date", "expires_on": "2001-01-01"}, "expires_on"),
        ({"own": ["jobs"], "expires": "date", "expires_on": "9999-12-31"}, "expires_on"),
    ],
)
def test_invalid_form_creates_no_token(hub: RunningHub, fields: dict[str, str | list[str]], wrong: str) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, bob)) as client:
        create_repo(client, "bob/secret", private=True)
    with api(hub, create_token(hub, ada)) as client:
        create_repo(client, "ada/b")
    fields = {name: acme.id if value == "ACME" else value for name, value in fields.items()}
    with browser_of(hub, ada) as browser:
        refused = fill(browser, **fields)
        assert refused.status_code == 422
        assert f'href="#{wrong}"' in refused.text
        assert f'id="{wrong}"' in refused.text
    assert tokens_of(hub, ada) == ["test"]


@pytest.mark.one_engine
def test_addresses_are_accepted_and_all_unknown_repos_are_named(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as owner:
        create_repo(owner, "ada/b", private=True)
    with browser_of(hub, ada) as browser:
        refused = fill(browser, repos="ada/b\nno/such\nbad", repo_scopes=["read-repos"])
        assert "There is no repo no/such or bad, or you have no access to it." in refused.text
        created = fill(browser, repos=f"{hub.url}/ada/b", repo_scopes=["read-repos"])
        with api(hub, secret_in(created)) as token:
            assert listed(token) == {"ada/b"}


@pytest.mark.one_engine
def test_organization_of_others_is_ignored(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    foreign = create_organization(hub, "foreign", create_user(hub, "bob"))
    with browser_of(hub, ada) as browser:
        refused = fill(browser, orgs=foreign.id, org_scopes=["read-repos"])
        assert (refused.status_code, 'href="#scopes"' in refused.text) == (422, True)


def test_tokens_of_a_user_have_a_bounded_number_of_places(hub: RunningHub) -> None:
    """Attack O70: a list of 500 tokens with 600 places each would take seconds."""
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    _, first = create_limited_token(hub, ada, places=[own_account(ada, ["jobs"])])
    add = "INSERT INTO token_limits (token_id, target_id, kind, scopes) VALUES (:token, :id, 'repo', 'read-repos')"
    rows: list[Params] = [{"token": first.id, "id": f"{number:024x}"} for number in range(MAX_PLACES_PER_USER - 2)]
    hub.call(lambda opened: opened.db.write_long(lambda tx: tx.exec_many(add, rows)))
    create_limited_token(hub, ada, places=[own_account(ada, ["jobs"])])
    with browser_of(hub, ada) as browser:
        refused = fill(browser, own=["jobs"])
        assert (refused.status_code, 'href="#scopes"' in refused.text) == (422, True)
        assert secret_in(fill(browser, everywhere=["profile"])), "a token without places"
    with browser_of(hub, bob) as browser:
        assert secret_in(fill(browser, own=["jobs"]))
