"""Authorization code with PKCE, from the app's first redirect to the user's claims."""

import base64
import json

import httpx
import pytest
from tests.bed.apps import approve, code_for, create_app, pkce_pair, redirect_parameters, tokens_for
from tests.bed.people import api, browser_of, create_organization, create_user
from tests.bed.running_hub import RunningHub


@pytest.mark.one_engine
def test_confidential_app_signs_a_user_in(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada, plan="team")
    client = create_app(hub, create_user(hub, "olga"))
    with browser_of(hub, ada) as browser:
        sent = approve(browser, client.address(nonce="n-1"), orgs=[acme.id])
    answer = redirect_parameters(sent)
    assert (answer["state"], answer["iss"]) == ("s t&te", hub.url)
    body = client.redeem(answer["code"]).json()
    assert body["token_type"] == "bearer"
    assert body["expires_in"] == 28800
    assert body["scope"].split() == ["read-repos", "email", "profile", "openid"]
    assert "refresh_token" not in body
    claims = json.loads(base64.urlsafe_b64decode(body["id_token"].split(".")[1] + "=="))
    assert claims["iss"] == hub.url
    assert (claims["sub"], claims["aud"], claims["nonce"]) == (ada.id, client.id, "n-1")
    with api(hub, body["access_token"]) as app:
        said = app.get("/oauth/userinfo").json()
        assert said["preferred_username"] == "ada"
        assert said["orgs"] == said["organizations"]
        assert said["orgs"][0]["sub"] == acme.id
        assert said["orgs"][0]["roleInOrg"] == "admin"
        who = app.get("/api/whoami-v2").json()
        assert who["auth"]["type"] == "oauth"
        assert [org["name"] for org in who["orgs"]] == ["acme"]


@pytest.mark.one_engine
def test_repeated_request_needs_no_consent(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), create_app(hub, create_user(hub, "olga"))
    code_for(client, ada)
    with browser_of(hub, ada) as browser:
        assert "code" in redirect_parameters(browser.get(client.address()))
        assert "code" in redirect_parameters(browser.post(client.address()))
        assert browser.get(client.address(prompt="consent")).status_code == 200
        assert browser.post(client.address(prompt="consent")).status_code == 200, "like GET: the consent page"


def test_public_app_may_omit_its_client_id_at_the_token_endpoint(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), create_app(hub, create_user(hub, "olga"), confidential=False)
    verifier, challenge = pkce_pair()
    code = code_for(client, ada, code_challenge=challenge, code_challenge_method="S256")
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": client.app.redirect_uris[0]}
    assert httpx.post(f"{hub.url}/oauth/token", data=form).json()["error"] == "invalid_grant"
    response = httpx.post(f"{hub.url}/oauth/token", json={**form, "code_verifier": verifier})
    assert response.status_code == 200


def test_refresh_rotates_the_refresh_token(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    client = create_app(hub, create_user(hub, "olga"), confidential=False, refresh_tokens=True)
    first = tokens_for(client, ada)["refresh_token"]

    def refresh(token: str, **more: str) -> httpx.Response:
        return client.post("/oauth/token", {"grant_type": "refresh_token", "refresh_token": token, **more})

    second = refresh(first).json()
    assert refresh(first).json()["refresh_token"] == second["refresh_token"], "a lost answer is given again"
    assert refresh(first, scope="openid webhooks").json()["error"] == "invalid_scope"
    third = refresh(second["refresh_token"]).json()
    hub.clock.advance(seconds=61)
    refused = refresh(first)
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
    assert refresh(third["refresh_token"]).json()["error"] == "invalid_grant", "the whole family ended"
    with api(hub, third["access_token"]) as app:
        assert app.get("/oauth/userinfo").status_code == 401


def test_revoked_token_is_inactive(hub: RunningHub) -> None:
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    client, sibling, stranger = create_app(hub, olga), create_app(hub, olga), create_app(hub, ada)
    token = tokens_for(client, ada)["access_token"]
    for asking, active in ((client, True), (sibling, True), (stranger, False)):
        assert asking.post("/oauth/introspect", {"token": token}).json()["active"] is active
    assert stranger.post("/oauth/revoke", {"token": token}).json()["error"] == "invalid_request"
    revoked = client.post("/oauth/revoke", {"token": token})
    assert (revoked.status_code, revoked.headers["content-type"], revoked.json()) == (200, "application/json", {})
    assert client.post("/oauth/introspect", {"token": token}).json() == {"active": False}
