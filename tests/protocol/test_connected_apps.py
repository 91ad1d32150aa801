"""Connected apps: listing and changing their permissions, which tokens follow at once, and revoking."""

from urllib.parse import quote

import httpx
import pytest
from tests.bed.apps import Client, approve, code_for, create_app, pkce_pair, redirect_parameters, tokens_for
from tests.bed.cimd_documents import store_document
from tests.bed.concurrency import run_concurrently
from tests.bed.people import Page, api, browser_of, create_organization, create_token, create_user, submit
from tests.bed.processes import until
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User
from hubgate.server.oauth.apps import store
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine

PAGE, API = "/settings/connected", "/api/settings/connected-apps"


def at(path: str, client: Client) -> str:
    return f"{path}/{quote(client.id, safe='')}"


def document_token(client: Client, user: User, scope: str = "openid profile") -> str:
    verifier, challenge = pkce_pair()
    with browser_of(client.hub, user) as browser:
        address = client.address(scope=scope, code_challenge=challenge, code_challenge_method="S256")
        code = redirect_parameters(approve(browser, address))["code"]
    token: str = client.redeem(code, code_verifier=verifier).json()["access_token"]
    return token


def userinfo(hub: RunningHub, token: str) -> httpx.Response:
    with api(hub, token) as app:
        return app.get("/oauth/userinfo")


def roles(hub: RunningHub, token: str) -> set[str]:
    return {org["preferred_username"] for org in userinfo(hub, token).json()["orgs"] if "roleInOrg" in org}


def test_list_is_empty_at_first(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as browser:
        page = browser.get(PAGE).text
        assert "Apps you approve appear here." in page
        assert f'<a href="{PAGE}" aria-current="page">Connected apps</a>' in page
        assert '<a href="/settings/applications">Apps you build</a>' in page
    with api(hub, create_token(hub, ada, "read")) as script:
        assert script.get(API).json() == []


def test_list_names_host_last_use_and_scopes(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    client, document = create_app(hub), store_document(hub)
    with browser_of(hub, ada) as browser:
        approve(browser, client.address(), orgs=[acme.id])
        hub.clock.advance(seconds=60)
        document_token(document, ada)
        page = browser.get(PAGE).text
    for text in (
        "Notebook",
        "app.example",
        "Field Notes",
        "notes.example",
        '<code class="scope">read-repos</code>',
        "1 organization<",
    ):
        assert text in page
    assert page.index("Field Notes") < page.index("Notebook"), "the one used last comes first"
    with api(hub, create_token(hub, ada, "read")) as script:
        listed = script.get(API).json()
        assert [one["clientId"] for one in listed] == [document.id, client.id]
        assert listed[1] == {
            "clientId": client.id,
            "name": "Notebook",
            "hosts": ["app.example"],
            "scopes": ["read-repos", "email", "profile", "openid"],
            "organizations": [acme.id],
            "organizationScopes": {acme.id: ["read-repos"]},
            "resources": [],
            "resourceScopes": [],
            "scopesByResource": {},
            "createdAt": "2026-09-21T14:13:20.000Z",
            "updatedAt": "2026-09-21T14:13:20.000Z",
            "lastUsedAt": "2026-09-21T14:13:20.000Z",
        }
        assert script.get(at(API, client)).json() == listed[1]
        assert script.get(at(API, document)).json() == listed[0], "an address is one segment, percent-encoded"
        first = script.get(API, params={"limit": 1})
        assert [one["clientId"] for one in first.json()] == [document.id]
        assert [one["clientId"] for one in script.get(first.links["next"]["url"]).json()] == [client.id]


def test_last_use_follows_the_tokens(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), create_app(hub)
    token = tokens_for(client, ada)["access_token"]
    hub.clock.advance(seconds=3600)
    userinfo(hub, token)
    with api(hub, create_token(hub, ada, "read")) as script:
        until(lambda: script.get(at(API, client)).json()["lastUsedAt"] == "2026-09-21T15:13:20.000Z")


def test_tokens_follow_a_change_at_the_next_request(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme, beta = (create_organization(hub, name, ada) for name in ("acme", "beta"))
    client = create_app(hub, scopes=("openid", "profile", "email", "read-billing"))
    with browser_of(hub, ada) as browser:
        sent = approve(browser, client.address(scope="openid profile email"), orgs=[acme.id])
    token = client.redeem(redirect_parameters(sent)["code"]).json()["access_token"]
    assert userinfo(hub, token).json()["email"] == "ada@example.org"
    assert roles(hub, token) == {"acme"}
    with api(hub, create_token(hub, ada)) as script:
        changed = script.patch(at(API, client), json={"scopes": ["openid", "profile"]})
        assert (changed.status_code, changed.json()["scopes"]) == (200, ["profile", "openid"])
        assert changed.json()["organizations"] == [acme.id], "what was not said stays"
        assert "email" not in userinfo(hub, token).json()
        assert client.post("/oauth/introspect", {"token": token}).json()["scope"] == "openid profile"
        added = script.patch(at(API, client), json={"scopes": ["openid", "profile", "email", "read-billing"]})
        assert added.status_code == 200
        assert "email" in userinfo(hub, token).json(), "given to this token, taken away and given back"
        assert "canPay" not in userinfo(hub, token).json(), "an added scope does not widen a live token"
        script.patch(at(API, client), json={"organizations": [acme.id, beta.id]})
        assert roles(hub, token) == {"acme", "beta"}, "an added organization does"
        script.patch(at(API, client), json={"organizations": [beta.id]})
        assert roles(hub, token) == {"beta"}
        script.patch(at(API, client), json={"organizations": []})
        assert roles(hub, token) == set()
        assert script.patch(at(API, client), json={}).status_code == 200
    with browser_of(hub, ada) as browser:
        answered = browser.get(client.address(scope="openid profile email read-billing"))
    assert "canPay" in userinfo(hub, client.redeem(redirect_parameters(answered)["code"]).json()["access_token"]).json()


@pytest.mark.parametrize(
    "body",
    [
        {"scopes": ["openid", "manage-repos"]},
        {"scopes": ["nonsense"]},
        {"organizations": ["0" * 24]},
        {"organizations": "acme"},
        {"scopes": None},
        {"name": "Mine"},
    ],
)
def test_invalid_changes_are_rejected(hub: RunningHub, body: dict[str, object]) -> None:
    ada, client = create_user(hub, "ada"), create_app(hub)
    code_for(client, ada)
    with api(hub, create_token(hub, ada)) as script:
        before = script.get(at(API, client)).json()
        assert script.patch(at(API, client), json=body).status_code == 422
        assert script.get(at(API, client)).json() == before


def test_unknown_and_foreign_organizations_are_rejected_alike(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), create_app(hub)
    foreign = create_organization(hub, "acme", create_user(hub, "olga"))
    code_for(client, ada)
    with api(hub, create_token(hub, ada)) as script:
        answers = [script.patch(at(API, client), json={"organizations": [org]}) for org in (foreign.id, "0" * 24)]
    assert {(answer.status_code, answer.text) for answer in answers} == {(422, answers[0].text)}


def test_document_client_may_be_granted_any_scope(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), store_document(hub)
    document_token(client, ada)
    with api(hub, create_token(hub, ada)) as script:
        assert script.patch(at(API, client), json={"scopes": ["openid", "jobs"]}).status_code == 200
        assert script.patch(at(API, client), json={"scopes": ["openid", "superpowers"]}).status_code == 422


def test_revocation_ends_tokens_immediately(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    client = create_app(hub, confidential=False, refresh_tokens=True)
    verifier, challenge = pkce_pair()
    tokens = tokens_for(client, ada)
    code = answer_of_signed_in(client, ada, challenge)
    with api(hub, create_token(hub, ada)) as script:
        assert script.delete(at(API, client)).status_code == 204
        assert script.delete(at(API, client)).status_code == 404
        assert script.get(at(API, client)).status_code == 404
        assert script.patch(at(API, client), json={"scopes": []}).status_code == 404
        assert script.get(API).json() == []
    assert userinfo(hub, tokens["access_token"]).status_code == 401
    form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    assert client.post("/oauth/token", form).json()["error"] == "invalid_grant"
    assert client.redeem(code, code_verifier=verifier).json()["error"] == "invalid_grant"
    with browser_of(hub, ada) as browser:
        asked = client.address(code_challenge=challenge, code_challenge_method="S256")
        assert browser.get(asked).status_code == 200, "it has to ask again"


def test_revocation_during_an_authorization_request_fails_cleanly(hub: RunningHub) -> None:
    """In either order the app gets a code or the user is asked: nothing fails."""
    ada, client = create_user(hub, "ada"), create_app(hub)
    token = create_token(hub, ada)
    with browser_of(hub, ada) as browser, api(hub, token) as script:
        for _ in range(5):
            approve(browser, client.address())
            ask = lambda: browser.get(client.address())  # noqa: E731
            *asked, revoked = run_concurrently([ask, ask, ask, lambda: script.delete(at(API, client))])
            assert revoked.status_code == 204
            assert {answer.status_code for answer in asked} <= {200, 303}
            assert script.get(API).json() == []


def test_concurrent_change_of_organizations_restores_no_scope(hub: RunningHub) -> None:
    """In either order, what one change does not name stays as the other left it."""
    ada, client = create_user(hub, "ada"), create_app(hub)
    acme = create_organization(hub, "acme", ada)
    token = create_token(hub, ada)
    with browser_of(hub, ada) as browser, api(hub, token) as script:
        for _ in range(8):
            approve(browser, client.address(prompt="consent"))
            change = lambda: script.patch(at(API, client), json={"organizations": [acme.id]})  # noqa: E731
            narrow = lambda: script.patch(at(API, client), json={"scopes": ["openid"]})  # noqa: E731
            answers = run_concurrently([change, change, narrow, change, change])
            assert {answer.status_code for answer in answers} == {200}
            assert script.get(at(API, client)).json()["scopes"] == ["openid"]


def answer_of_signed_in(client: Client, user: User, challenge: str) -> str:
    """A code that is not redeemed yet."""
    with browser_of(client.hub, user) as browser:
        asked = client.address(code_challenge=challenge, code_challenge_method="S256")
        return redirect_parameters(browser.get(asked))["code"]


def test_permissions_are_changed_on_the_page(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    client = create_app(hub, scopes=("openid", "profile", "email", "read-repos", "jobs"), required_scopes=("jobs",))
    with browser_of(hub, ada) as browser:
        sent = approve(browser, client.address(scope="openid email read-repos jobs"))
        token = client.redeem(redirect_parameters(sent)["code"]).json()["access_token"]
        page = browser.get(at(PAGE, client))
        assert "Takes effect on the app's next request." in page.text
        assert '<input type="hidden" name="scopes" value="jobs">' in page.text, "required ones stay"
        assert 'name="scopes" value="read-repos" autocomplete="off" checked' in page.text
        assert 'name="scopes" value="profile" autocomplete="off">' in page.text, "not given so far"
        kept = ["openid", "email", "jobs"]
        saved = submit(browser, at(PAGE, client), at(PAGE, client), scopes=kept, orgs=[acme.id])
        assert (saved.status_code, saved.headers["location"]) == (303, at(PAGE, client))
        assert "Takes effect on the app's next request." in browser.get(at(PAGE, client)).text
        assert roles(hub, token) == {"acme"}
        assert client.post("/oauth/introspect", {"token": token}).json()["scope"] == "openid email jobs"
        refused = submit(browser, at(PAGE, client), at(PAGE, client), scopes=["webhooks"], orgs=[])
        assert refused.status_code == 422
        assert "webhooks is not among the scopes of this app." in refused.text
        hidden = submit(browser, at(PAGE, client), at(PAGE, client), scopes=["", "webhooks"], orgs=[])
        assert hidden.status_code == 422, "an empty name must not end the check"


def test_app_is_revoked_on_the_page(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), store_document(hub)
    token = document_token(client, ada)
    with browser_of(hub, ada) as browser:
        page = browser.get(f"{at(PAGE, client)}/revoke").text
        assert "and its 2 tokens are revoked" in page, "an access token and a refresh token"
        assert "Revoke <bdi>Field Notes</bdi>" in page
        gone = submit(browser, f"{at(PAGE, client)}/revoke")
        assert (gone.status_code, gone.headers["location"]) == (303, PAGE)
        assert "Revoked Field Notes." in browser.get(PAGE).text
        assert browser.get(at(PAGE, client)).status_code == 404
    assert userinfo(hub, token).status_code == 401


def test_other_users_cannot_see_or_change_it(hub: RunningHub) -> None:
    ada, bob, client = create_user(hub, "ada"), create_user(hub, "bob"), create_app(hub)
    token = tokens_for(client, ada)["access_token"]
    with api(hub, create_token(hub, bob)) as script:
        for method in ("GET", "PATCH", "DELETE"):
            body = {} if method == "PATCH" else None
            assert script.request(method, at(API, client), json=body).status_code == 404
    with browser_of(hub, bob) as browser:
        assert browser.get(at(PAGE, client)).status_code == 404
        assert browser.get(f"{at(PAGE, client)}/revoke").status_code == 404
        form = Page(browser.get(PAGE.replace("connected", "profile"))).hidden()
        assert browser.post(f"{at(PAGE, client)}/revoke", data=form).status_code == 404
    assert userinfo(hub, token).status_code == 200


def test_apps_and_read_tokens_cannot_change_it(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    client = create_app(hub, scopes=("openid", "profile", "manage-repos", "webhooks"))
    token = tokens_for(client, ada)["access_token"]
    with api(hub, token) as app, api(hub, create_token(hub, ada, "read")) as reader, hub.client() as stranger:
        for method in ("GET", "PATCH", "DELETE"):
            body = {} if method == "PATCH" else None
            assert app.request(method, at(API, client), json=body).status_code == 403
            assert stranger.request(method, at(API, client), json=body).status_code == 401
            if method != "GET":
                assert reader.request(method, at(API, client), json=body).status_code == 403
        assert app.get(API).status_code == 403
        assert stranger.get(PAGE).status_code == 303
    assert userinfo(hub, token).status_code == 200


def test_deleted_app_is_not_listed(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), create_app(hub)
    code_for(client, ada)

    async def work(opened: Hub) -> None:
        await opened.db.write(lambda tx: store.remove(tx, client.id))

    hub.call(work)
    with api(hub, create_token(hub, ada)) as script:
        assert script.get(API).json() == []
