"""Refreshing: within what the user still allows, while the app may, for ninety days from the last use."""

import base64
import json
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.bed.apps import Client, code_for, create_app, tokens_for
from tests.bed.people import api, create_token, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User

DAY = 24 * 60 * 60


@pytest.fixture
def ada(hub: RunningHub) -> User:
    return create_user(hub, "ada")


@pytest.fixture
def client(hub: RunningHub, ada: User) -> Client:
    return create_app(hub, ada, refresh_tokens=True)


def refresh(client: Client, token: str, **more: str) -> httpx.Response:
    return client.post("/oauth/token", {"grant_type": "refresh_token", "refresh_token": token, **more})


def allow_only(client: Client, user: User, *scopes: str) -> None:
    """On the user's Connected apps page."""
    with api(client.hub, create_token(client.hub, user)) as script:
        address = f"/api/settings/connected-apps/{quote(client.id)}"
        assert script.patch(address, json={"scopes": list(scopes)}).status_code == 200


def claims_of(body: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body["id_token"].split(".")[1] + "=="))
    return found


def refused(response: httpx.Response) -> str:
    assert response.status_code == 400, response.text
    assert "access_token" not in response.text
    error: str = response.json()["error"]
    return error


def test_revoked_scopes_are_missing_in_the_answer_and_the_id_token(client: Client, ada: User) -> None:
    first = tokens_for(client, ada)
    assert claims_of(first)["email"] == "ada@example.org"
    allow_only(client, ada, "openid")
    body = refresh(client, first["refresh_token"]).json()
    assert body["scope"] == "openid"
    assert not {"email", "name", "preferred_username"} & claims_of(body).keys()
    allow_only(client, ada, "openid", "email")
    body = refresh(client, body["refresh_token"]).json()
    assert body["scope"] == "email openid", "given back, it is there again"
    assert refresh(client, body["refresh_token"], scope="openid email profile").json()["scope"] == "openid email"


def test_refresh_is_rejected_if_nothing_is_left_of_the_consent(client: Client, ada: User) -> None:
    token = tokens_for(client, ada)["refresh_token"]
    allow_only(client, ada, "read-repos")
    assert refused(refresh(client, token, scope="openid email")) == "invalid_scope", "of what it asks for"
    assert refresh(client, token).json()["scope"] == "read-repos"
    allow_only(client, ada)
    assert refused(refresh(client, token)) == "invalid_grant"
    assert refused(refresh(client, token, scope="read-repos")) == "invalid_grant"


def test_code_is_rejected_after_the_consent_is_revoked(client: Client, ada: User) -> None:
    code, other = code_for(client, ada), code_for(client, ada)
    allow_only(client, ada, "openid", "read-repos")
    body = client.redeem(code).json()
    assert body["scope"] == "read-repos openid"
    assert "email" not in claims_of(body)
    assert refresh(client, body["refresh_token"]).json()["scope"] == "read-repos openid"
    allow_only(client, ada)
    assert refused(client.redeem(other)) == "invalid_grant"


def test_app_without_scopes_can_refresh(hub: RunningHub, ada: User) -> None:
    client = create_app(hub, ada, scopes=(), refresh_tokens=True)
    body = tokens_for(client, ada)
    assert body["scope"] == ""
    assert refresh(client, body["refresh_token"]).json()["scope"] == ""


def test_refresh_tokens_can_be_turned_off(hub: RunningHub, client: Client, ada: User) -> None:
    token = tokens_for(client, ada)["refresh_token"]
    with api(hub, create_token(hub, ada)) as owner:
        address = f"/api/settings/applications/{client.id}"
        assert owner.patch(address, json={"refreshTokens": False}).status_code == 200
        assert refused(refresh(client, token)) == "unauthorized_client"
        assert client.post("/oauth/introspect", {"token": token}).json() == {"active": False}
        assert owner.patch(address, json={"refreshTokens": True}).status_code == 200
    assert refresh(client, token).status_code == 200


@pytest.mark.parametrize("ignored", ["offline_access", "address phone", "openid offline_access"])
def test_unknown_scopes_are_ignored(client: Client, ada: User, ignored: str) -> None:
    token = tokens_for(client, ada, scope="openid offline_access")["refresh_token"]
    assert refresh(client, token, scope=ignored).json()["scope"] == "openid"


def test_refresh_token_expires_ninety_days_after_its_last_use(hub: RunningHub, client: Client, ada: User) -> None:
    """Also after a lost answer: the original and the repeated answer have the same lifetime."""
    first = tokens_for(client, ada)["refresh_token"]
    hub.clock.advance(80 * DAY)
    second = refresh(client, first).json()["refresh_token"]
    hub.clock.advance(80 * DAY)
    assert refresh(client, first).json()["refresh_token"] == second, "160 days old, used 80 days ago"
    hub.clock.advance(80 * DAY)
    third = refresh(client, second)
    assert third.status_code == 200, "given out again 80 days ago"
    hub.clock.advance(90 * DAY + 1)
    assert refused(refresh(client, third.json()["refresh_token"])) == "invalid_grant"
