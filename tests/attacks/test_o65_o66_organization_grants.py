"""O65, O66: an organization is granted with the scopes that were shown, to the current membership."""

import httpx
import pytest
from tests.bed.apps import Client, approve, create_app, redirect_parameters
from tests.bed.organizations import role_in
from tests.bed.people import Page, api, browser_of, create_organization, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import members, store
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine

SCOPES = ("openid", "profile", "read-repos", "write-repos", "webhooks", "read-billing")


def token_for(client: Client, user: User, scope: str, orgs: list[str] | None = None, **form: object) -> str:
    with browser_of(client.hub, user) as browser:
        sent = approve(browser, client.address(scope=scope, prompt="consent"), orgs=orgs or [], **form)
    token: str = client.redeem(redirect_parameters(sent)["code"]).json()["access_token"]
    return token


def sees(hub: RunningHub, token: str, repo: str = "acme/secret") -> int:
    with api(hub, token) as app:
        return app.get(f"/api/models/{repo}").status_code


def listed(hub: RunningHub, token: str) -> set[str]:
    with api(hub, token) as app:
        return {repo["id"] for repo in app.get("/api/models").json()}


def stage(hub: RunningHub) -> tuple[User, Organization, Client]:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as owner:
        create_repo(owner, "acme/secret", private=True)
        create_repo(owner, "mine", private=True)
    return ada, acme, create_app(hub, create_user(hub, "olga"), scopes=SCOPES)


def test_o65_narrow_consent_does_not_extend_an_older_token(hub: RunningHub) -> None:
    ada, acme, client = stage(hub)
    wide = token_for(client, ada, "openid profile read-repos write-repos webhooks")
    assert sees(hub, wide) == 404
    narrow = token_for(client, ada, "openid profile webhooks", [acme.id])
    for token in (wide, narrow):
        assert sees(hub, token) == 404
        assert "acme/secret" not in listed(hub, token)
    assert sees(hub, wide, "ada/mine") == 200, "outside of organizations it has what it was given"
    with api(hub, wide) as app:
        lines = b'{"key": "header", "value": {"summary": "x"}}\n'
        refused = app.post("/api/models/acme/secret/commit/main", content=lines)
        assert refused.status_code in (403, 404)
        created = app.post("/api/repos/create", json={"name": "new", "organization": "acme", "type": "model"})
        assert created.status_code == 403
        assert app.get("/api/organizations/acme/settings/webhooks").status_code == 200, "it was granted with webhooks"
        assert _can_pay(app) is None


def _can_pay(app: httpx.Client) -> bool | None:
    (org,) = app.get("/oauth/userinfo").json()["orgs"]
    said: bool | None = org.get("canPay")
    return said


def test_o65_silent_code_is_issued_only_within_the_organizations_grant(hub: RunningHub) -> None:
    ada, acme, client = stage(hub)
    token_for(client, ada, "openid read-repos")
    token_for(client, ada, "openid webhooks", [acme.id])
    with browser_of(hub, ada) as browser:
        asked = {"scope": "openid read-repos", "prompt": "none"}
        assert "code" in redirect_parameters(browser.get(client.address(**asked)))
        refused = redirect_parameters(browser.get(client.address(orgIds=acme.id, **asked)))
        assert refused["error"] == "consent_required"


def test_o65_new_consent_adds_shown_scopes_and_removes_unticked_ones(hub: RunningHub) -> None:
    ada, acme, client = stage(hub)
    token = token_for(client, ada, "openid read-repos read-billing", [acme.id])
    assert sees(hub, token) == 200
    other = token_for(client, ada, "openid webhooks", [acme.id])
    assert sees(hub, token) == 200, "what was not shown stays"
    token_for(client, ada, "openid webhooks read-repos", [acme.id], scopes=["openid", "webhooks"])
    assert sees(hub, token) == 404, "what was shown and unticked goes"
    with api(hub, token) as app:
        assert _can_pay(app) is False, "not shown, so it stays"
    with api(hub, other) as app:
        assert app.get("/api/organizations/acme/settings/webhooks").status_code == 200
    token_for(client, ada, "openid webhooks")
    with api(hub, other) as app:
        refused = app.get("/api/organizations/acme/settings/webhooks")
        assert refused.status_code == 403, "an organization that is unticked loses everything"


def test_o65_refusal_names_the_scope_missing_in_the_organization(hub: RunningHub) -> None:
    ada, acme, client = stage(hub)
    wide = token_for(client, ada, "openid webhooks read-repos")
    token_for(client, ada, "openid read-repos", [acme.id])
    with api(hub, wide) as app:
        refused = app.get("/api/organizations/acme/settings/webhooks")
    assert refused.status_code == 403
    assert "without the scope webhooks" in refused.json()["error"]


def test_o65_connected_apps_shows_and_edits_scopes_per_organization(hub: RunningHub) -> None:
    ada, acme, client = stage(hub)
    beta = create_organization(hub, "beta", ada)
    token = token_for(client, ada, "openid read-repos webhooks", [acme.id])
    page, path = f"/settings/connected/{client.id}", f"/api/settings/connected-apps/{client.id}"
    box = f'name="scopes.{acme.id}" value="{{}}" autocomplete="off"'
    with browser_of(hub, ada) as browser:
        shown = browser.get(page)
        assert box.format("read-repos") + " checked" in shown.text
        assert f"scopes.{beta.id}" not in shown.text, "not granted yet"
        form = {
            **Page(shown).hidden(page),
            "scopes": ["openid", "read-repos", "webhooks"],
            "orgs": [acme.id, beta.id],
            f"scopes.{acme.id}": ["webhooks"],
        }
        assert browser.post(page, data=form).status_code == 303
        assert box.format("read-repos") + ">" in browser.get(page).text
        nothing = {**form, f"scopes.{acme.id}": [""]}
        assert browser.post(page, data=nothing).status_code == 303
        assert box.format("webhooks") + ">" in browser.get(page).text
        assert browser.post(page, data=form).status_code == 303
    assert sees(hub, token) == 404
    with api(hub, create_token(hub, ada)) as script:
        said = script.get(path).json()
        assert said["organizationScopes"] == {acme.id: ["webhooks"], beta.id: ["webhooks", "read-repos"]}
        given = script.patch(path, json={"organizationScopes": {acme.id: ["read-repos"]}})
        assert given.json()["organizationScopes"][acme.id] == ["read-repos"]
        assert sees(hub, token) == 200
        for wrong in ({acme.id: ["jobs"]}, {"0" * 24: ["read-repos"]}, {acme.id: "read-repos"}):
            assert script.patch(path, json={"organizationScopes": wrong}).status_code == 422
        taken = script.patch(path, json={"scopes": ["openid", "webhooks"]}).json()
        assert taken["organizationScopes"] == {acme.id: [], beta.id: ["webhooks"]}
        back = script.patch(path, json={"scopes": ["openid", "webhooks", "read-repos"]}).json()
        assert back["organizationScopes"] == {acme.id: [], beta.id: ["webhooks"]}
        assert sees(hub, token) == 404


def test_o66_member_who_was_removed_and_added_again_has_granted_nothing(hub: RunningHub) -> None:
    _, acme, client = stage(hub)
    bob = create_user(hub, "bob")

    async def join(opened: Hub) -> None:
        await opened.db.write(lambda tx: store.add_member(tx, acme.id, bob.id, Role.WRITE, opened.clock()))

    async def leave(opened: Hub) -> None:
        await members.remove(opened.accounts, acme, bob, SYSTEM)

    hub.call(join)
    token = token_for(client, bob, "openid read-repos", [acme.id])
    assert sees(hub, token) == 200
    hub.call(leave)
    assert sees(hub, token) == 404
    hub.clock.advance(seconds=60)
    hub.call(join)
    assert role_in(hub, acme, bob) == "write"
    assert sees(hub, token) == 404
    assert "acme/secret" not in listed(hub, token)
    with browser_of(hub, bob) as browser:
        quiet = client.address(scope="openid read-repos", orgIds=acme.id, prompt="none")
        assert redirect_parameters(browser.get(quiet))["error"] == "consent_required"
    with api(hub, create_token(hub, bob)) as script:
        assert script.get(f"/api/settings/connected-apps/{client.id}").json()["organizations"] == []
    again = token_for(client, bob, "openid read-repos", [acme.id])
    assert [sees(hub, one) for one in (token, again)] == [200, 200]
