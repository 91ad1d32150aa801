"""The `claims` parameter and the claim `groups` (OpenID Connect Core, section 5.5)."""

import base64
import json
from typing import Any

import pytest
from tests.bed.apps import Client, approve, create_app, redirect_parameters, token_of, tokens_for
from tests.bed.exchange import create_exchange_app, exchange_token
from tests.bed.people import api, browser_of, create_organization, create_token, create_user
from tests.bed.resource_servers import IDENTIFIER, register
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import Organization, User

pytestmark = pytest.mark.one_engine


def claims_of(token: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    return found


def userinfo(hub: RunningHub, token: str) -> dict[str, Any]:
    with api(hub, token) as app:
        found: dict[str, Any] = app.get("/oauth/userinfo").json()
    return found


def people(hub: RunningHub) -> tuple[User, Organization]:
    ada = create_user(hub, "ada")
    create_organization(hub, "zoo", ada)
    return ada, create_organization(hub, "acme", ada)


def signed_in(client: Client, user: User, *granted: Organization, **parameters: str) -> dict[str, Any]:
    with browser_of(client.hub, user) as browser:
        sent = approve(browser, client.address(**parameters), orgs=[organization.id for organization in granted])
    body: dict[str, Any] = client.redeem(redirect_parameters(sent)["code"]).json()
    return body


def test_groups_are_where_the_app_requested_them(hub: RunningHub) -> None:
    ada, acme = people(hub)
    client = create_app(hub, create_user(hub, "olga"), refresh_tokens=True)
    names = ["acme", "acme:admin", "zoo"]
    for place, in_id_token, in_userinfo in (("id_token", names, None), ("userinfo", None, names)):
        asked = {"scope": "openid profile", "prompt": "consent", "claims": json.dumps({place: {"groups": None}})}
        body = signed_in(client, ada, acme, **asked)
        for _ in range(2):
            assert claims_of(body["id_token"]).get("groups") == in_id_token, place
            assert userinfo(hub, body["access_token"]).get("groups") == in_userinfo, place
            refresh = {"grant_type": "refresh_token", "refresh_token": body["refresh_token"]}
            body = client.post("/oauth/token", refresh).json()
    plain = tokens_for(client, ada, scope="openid profile")
    assert "groups" not in claims_of(plain["id_token"]) | userinfo(hub, plain["access_token"])


@pytest.mark.parametrize("tokens", ["opaque", "jwt"])
def test_app_for_another_server_gets_no_groups(hub: RunningHub, tokens: str) -> None:
    """Organizations exist only on the hub. Claims that identify the user are available for any server."""
    ada, _ = people(hub)
    register(hub, create_user(hub, "olga"), tokens=tokens)
    client = create_app(hub, None, groups_claim=True)
    wanted = json.dumps({place: {"groups": None, "email": None} for place in ("id_token", "userinfo")})
    body = signed_in(client, ada, scope="openid profile mcp:tools", resource=IDENTIFIER, claims=wanted)
    assert set(body["scope"].split()) == {"openid", "profile", "email", "mcp:tools"}
    with hub.client() as anyone:
        answer = anyone.post("/oauth/userinfo", data={"access_token": body["access_token"]})
    assert answer.status_code == 200, answer.text
    for claims in (claims_of(body["id_token"]), answer.json()):
        assert ("groups" in claims, claims["email"]) == (False, "ada@example.org")


def test_groups_can_be_an_apps_setting(hub: RunningHub) -> None:
    ada, acme = people(hub)
    olga = create_user(hub, "olga")
    client = create_app(hub, olga)
    with api(hub, create_token(hub, olga)) as owner:
        changed = owner.patch(f"/api/settings/applications/{client.id}", json={"groupsClaim": True})
        assert (changed.status_code, changed.json()["groupsClaim"]) == (200, True)
    body = tokens_for(client, ada, scope="openid profile")
    assert claims_of(body["id_token"])["groups"] == userinfo(hub, body["access_token"])["groups"] == ["acme", "zoo"]
    assert "groups" not in userinfo(hub, tokens_for(client, ada, scope="openid")["access_token"]), "needs profile"
    other = {"scope": "openid profile", "resource": "https://mcp.example/"}
    foreign = tokens_for(client, ada, **other)
    assert "groups" not in claims_of(foreign["id_token"]) | userinfo(hub, foreign["access_token"])
    granted = token_of(client, ada, "profile", acme)
    assert userinfo(hub, granted)["groups"] == ["acme", "acme:admin", "zoo"], "roles of granted organizations only"


def test_exchanged_token_names_its_organization_only(hub: RunningHub) -> None:
    ada, acme = people(hub)
    client = create_exchange_app(hub, acme, groups_claim=True)
    body = exchange_token(client, ada.email, scope="openid profile")
    names = ["acme", "acme:admin"]
    assert claims_of(body["id_token"])["groups"] == userinfo(hub, body["access_token"])["groups"] == names


def test_requested_claim_asks_for_its_scope(hub: RunningHub) -> None:
    """The consent page shows the scope, and only scopes of the app are added."""
    ada = create_user(hub, "ada")
    client = create_app(hub, create_user(hub, "olga"), scopes=("openid", "profile"))
    asked = {"userinfo": {"name": {"essential": True}, "email": None, "shoe_size": {"value": 42}}, "other": 1}
    address = client.address(scope="openid", claims=json.dumps(asked))
    with browser_of(hub, ada) as browser:
        page = browser.get(address).text
        assert ("See your name, avatar and website" in page, "See your e-mail address" in page) == (True, False)
        body = client.redeem(redirect_parameters(approve(browser, address))["code"]).json()
    assert body["scope"] == "openid profile"
    assert userinfo(hub, body["access_token"])["name"] == "ada"


def test_app_may_name_the_only_user_it_accepts(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    client = create_app(hub, create_user(hub, "olga"))

    def asked(user: User, **more: str) -> str:
        return client.address(claims=json.dumps({"id_token": {"sub": {"value": user.id}}}), **more)

    hint = tokens_for(client, ada)["id_token"]
    with browser_of(hub, ada) as browser:
        assert "code" in redirect_parameters(browser.get(asked(ada, prompt="none")))
        assert redirect_parameters(browser.get(asked(bob, prompt="none")))["error"] == "login_required"
        assert browser.get(asked(bob)).headers["location"].startswith("/login?")
        assert "code" in redirect_parameters(browser.get(asked(ada, prompt="none", id_token_hint=hint)))
        assert redirect_parameters(browser.get(asked(bob, id_token_hint=hint)))["error"] == "invalid_request"


@pytest.mark.parametrize(
    "claims", ["{", "[]", "1", '"x"', '{"userinfo": []}', '{"id_token": 1}', "[" * 3000, '{"a": "' + "x" * 4096 + '"}']
)
def test_malformed_claims_are_rejected(hub: RunningHub, claims: str) -> None:
    client = create_app(hub, create_user(hub, "olga"))
    with hub.client() as visitor:
        assert redirect_parameters(visitor.get(client.address(claims=claims)))["error"] == "invalid_request"
