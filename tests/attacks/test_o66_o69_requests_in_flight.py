"""O66, O69: a request whose body is received after its caller lost the permission changes nothing.

Refreshed tokens reach only what is left of a grant.
"""

import pytest
from tests.bed.apps import approve, create_app, redirect_parameters
from tests.bed.cimd_documents import store_document
from tests.bed.people import Page, api, browser_of, create_organization, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub
from tests.bed.slow_requests import slow_json

from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import members, store
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM
from hubgate.server.resources import Hub


def add(hub: RunningHub, organization: Organization, user: User, role: Role) -> None:
    async def work(opened: Hub) -> None:
        await opened.db.write(lambda tx: store.add_member(tx, organization.id, user.id, role, opened.clock()))

    hub.call(work)


def remove(hub: RunningHub, organization: Organization, user: User) -> None:
    hub.call(lambda opened: members.remove(opened.accounts, organization, user, SYSTEM))


@pytest.mark.parametrize("how", ["removed", "demoted"])
@pytest.mark.parametrize("what", ["move", "delete"])
def test_o69_former_admin_cannot_move_or_delete_a_repo(hub: RunningHub, what: str, how: str) -> None:
    ada, eve = create_user(hub, "ada"), create_user(hub, "eve")
    acme = create_organization(hub, "acme", ada, eve="admin")
    with api(hub, create_token(hub, ada)) as admin:
        create_repo(admin, "acme/secret", private=True)
        token = create_token(hub, eve)
        if what == "move":
            body = {"fromRepo": "acme/secret", "toRepo": "eve/secret", "type": "model", "leaveRedirect": False}
            slow = slow_json(hub, token, "POST /api/repos/move", body)
        else:
            slow = slow_json(
                hub, token, "DELETE /api/repos/delete", {"name": "secret", "organization": "acme", "type": "model"}
            )
        if how == "removed":
            remove(hub, acme, eve)
        else:
            hub.call(lambda opened: members.change_role(opened.accounts, acme, eve, Role.READ, SYSTEM))
        assert slow.status() == (404 if how == "removed" else 403)
        assert admin.get("/api/models/acme/secret").json()["id"] == "acme/secret"


def test_o69_former_member_cannot_move_a_repo_into_the_organization(hub: RunningHub) -> None:
    ada, eve = create_user(hub, "ada"), create_user(hub, "eve")
    acme = create_organization(hub, "acme", ada, eve="write")
    token = create_token(hub, eve)
    with api(hub, token) as writer:
        create_repo(writer, "mine")
        body = {"fromRepo": "eve/mine", "toRepo": "acme/mine", "type": "model"}
        slow = slow_json(hub, token, "POST /api/repos/move", body)
        remove(hub, acme, eve)
        assert slow.status() == 403
        assert writer.get("/api/models/eve/mine").json()["id"] == "eve/mine"


def test_o66_refreshed_token_reaches_only_what_is_left_of_the_grant(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="write")
    scopes = ("openid", "profile", "read-repos", "webhooks")
    client = create_app(hub, create_user(hub, "olga"), scopes=scopes, refresh_tokens=True)
    with api(hub, create_token(hub, ada)) as owner:
        create_repo(owner, "acme/secret", private=True)

    def refreshed(held: dict[str, str], **more: str) -> dict[str, str]:
        form = {"grant_type": "refresh_token", "refresh_token": held["refresh_token"], **more}
        found: dict[str, str] = client.post("/oauth/token", form).json()
        return found

    def sees(held: dict[str, str]) -> int:
        with api(hub, held["access_token"]) as app:
            return app.get("/api/models/acme/secret").status_code

    with browser_of(hub, bob) as browser:
        code = redirect_parameters(approve(browser, client.address(), orgs=[acme.id]))["code"]
    first = client.redeem(code).json()
    second = refreshed(first)
    assert (sees(first), sees(second)) == (200, 200)
    remove(hub, acme, bob)
    assert sees(refreshed(second)) == 404
    add(hub, acme, bob, Role.WRITE)
    third = refreshed(second)
    assert [sees(one) for one in (first, second, third)] == [404] * 3
    connected = f"/api/settings/connected-apps/{client.id}"
    with api(hub, create_token(hub, bob)) as script:
        granted = {"organizationScopes": {acme.id: ["webhooks"]}}
        assert script.patch(connected, json=granted).status_code == 200
        assert sees(refreshed(third)) == 404, "granted anew, without read-repos"
        assert script.patch(connected, json={"scopes": ["openid", "webhooks"]}).status_code == 200
        narrow = refreshed(third)
        assert narrow["scope"] == "webhooks openid"
        assert refreshed(third, scope="read-repos")["error"] == "invalid_scope"
        assert refreshed(third, scope="manage-repos")["error"] == "invalid_scope"
        assert refreshed(third, resource="https://mcp.example/")["error"] == "invalid_target"
        assert script.patch(connected, json={"scopes": []}).status_code == 200
        assert refreshed(third)["error"] == "invalid_grant"


def test_o37_tampered_organization_fields_grant_nothing(hub: RunningHub) -> None:
    """On the consent page, and on Connected apps with its fields per organization."""
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    foreign = create_organization(hub, "foreign", create_user(hub, "bob"))
    client, document = create_app(hub, None, scopes=("openid", "read-repos", "webhooks")), store_document(hub)
    page = f"/settings/connected/{client.id}"
    with browser_of(hub, ada) as browser, api(hub, create_token(hub, ada)) as script:

        def granted_scopes(client_id: str = client.id) -> tuple[list[str], dict[str, list[str]]]:
            (found,) = [
                one for one in script.get("/api/settings/connected-apps").json() if one["clientId"] == client_id
            ]
            return found["scopes"], found["organizationScopes"]

        asked = client.address(scope="openid read-repos")
        tampered = {
            "scopes": ["openid", "read-repos", "read-repos", "webhooks", "manage-repos", "read-repos webhooks"],
            "orgs": [acme.id, acme.id, foreign.id, "0" * 24, "", f"{acme.id} {foreign.id}"],
            f"scopes.{acme.id}": "webhooks",
            f"scopes.{foreign.id}": "read-repos",
        }
        twice = {**tampered, f"scopes.{acme.id}": ["webhooks", "read-repos"]}
        assert redirect_parameters(approve(browser, asked, **twice))["error"] == "invalid_request"
        assert "code" in redirect_parameters(approve(browser, asked, **tampered))
        assert granted_scopes() == (["read-repos", "openid"], {acme.id: ["read-repos"]})
        for twice in ("decision", "shown"):
            hidden = {**Page(browser.get(client.address(prompt="consent"))).hidden(), "decision": "approve"}
            sent = browser.post(client.address(prompt="consent"), data={**hidden, twice: [hidden[twice]] * 2})
            assert sent.status_code == 400, twice
        form = {**Page(browser.get(page)).hidden(page), "scopes": ["openid", "read-repos"], "orgs": [acme.id]}
        for wrong in (
            {"orgs": [acme.id, foreign.id]},
            {"orgs": [foreign.id], f"scopes.{foreign.id}": ["", "read-repos"]},
            {"scopes": ["openid", "read-repos", "manage-repos"], f"scopes.{acme.id}": ["manage-repos"]},
        ):
            assert browser.post(page, data={**form, **wrong}).status_code == 422, wrong
        outside = {f"scopes.{acme.id}": ["", "manage-repos", "webhooks"], f"scopes.{foreign.id}": ["read-repos"]}
        assert browser.post(page, data={**form, **outside}).status_code == 303
        assert granted_scopes() == (["read-repos", "openid"], {acme.id: []}), "only what the app may do altogether"
        address = document.address(scope="openid read-repos", code_challenge="a" * 43, code_challenge_method="S256")
        assert "code" in redirect_parameters(approve(browser, address, **tampered))
        assert granted_scopes(document.id)[1] == {acme.id: ["read-repos"]}
        elsewhere = f"{address}&resource=https%3A%2F%2Fmcp.example%2F"
        assert "code" in redirect_parameters(approve(browser, elsewhere, **tampered))
        assert granted_scopes(document.id)[1] == {acme.id: ["read-repos"]}, (
            "the token elsewhere reaches no organization"
        )
