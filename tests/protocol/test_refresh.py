"""Refreshing: within what the user still allows, as long as the app may, ninety days from the last use."""

import base64
import json
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.bed.apps import Client, code_for, make_app, tokens_for
from tests.bed.people import api, make_token, make_user
from tests.bed.running import RunningHub

from hubgate.server.accounts.model import User

DAY = 24 * 60 * 60


@pytest.fixture
def ada(hub: RunningHub) -> User:
    return make_user(hub, "ada")


@pytest.fixture
def client(hub: RunningHub, ada: User) -> Client:
    return make_app(hub, ada, refresh_tokens=True)


def refresh(client: Client, token: str, **more: str) -> httpx.Response:
    return client.post("/oauth/token", {"grant_type": "refresh_token", "refresh_token": token, **more})


def allow_only(client: Client, user: User, *scopes: str) -> None:
    """On the user's page of connected apps."""
    with api(client.hub, make_token(client.hub, user)) as script:
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


def test_what_the_user_took_back_is_gone_from_the_answer_and_the_id_token(client: Client, ada: User) -> None:
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


def test_nothing_is_left(client: Client, ada: User) -> None:
    token = tokens_for(client, ada)["refresh_token"]
    allow_only(client, ada, "read-repos")
    assert refused(refresh(client, token, scope="openid email")) == "invalid_scope", "of what it asks for"
    assert refresh(client, token).json()["scope"] == "read-repos"
    allow_only(client, ada)
    assert refused(refresh(client, token)) == "invalid_grant"
    assert refused(refresh(client, token, scope="read-repos")) == "invalid_grant"


def test_taken_back_before_the_code_was_redeemed(client: Client, ada: User) -> None:
    code, other = code_for(client, ada), code_for(client, ada)
    allow_only(client, ada, "openid", "read-repos")
    body = client.redeem(code).json()
    assert body["scope"] == "read-repos openid"
    assert "email" not in claims_of(body)
    assert refresh(client, body["refresh_token"]).json()["scope"] == "read-repos openid"
    allow_only(client, ada)
    assert refused(client.redeem(other)) == "invalid_grant"


def test_an_app_without_scopes_has_nothing_to_lose(hub: RunningHub, ada: User) -> None:
    client = make_app(hub, ada, scopes=(), refresh_tokens=True)
    body = tokens_for(client, ada)
    assert body["scope"] == ""
    assert refresh(client, body["refresh_token"]).json()["scope"] == ""


def test_refresh_tokens_turned_off(hub: RunningHub, client: Client, ada: User) -> None:
    token = tokens_for(client, ada)["refresh_token"]
    with api(hub, make_token(hub, ada)) as owner:
        address = f"/api/settings/applications/{client.id}"
        assert owner.patch(address, json={"refreshTokens": False}).status_code == 200
        assert refused(refresh(client, token)) == "unauthorized_client"
        assert client.post("/oauth/introspect", {"token": token}).json() == {"active": False}
        assert owner.patch(address, json={"refreshTokens": True}).status_code == 200
    assert refresh(client, token).status_code == 200


@pytest.mark.parametrize("ignored", ["offline_access", "address phone", "openid offline_access"])
def test_scopes_that_mean_nothing_here_are_passed_over(client: Client, ada: User, ignored: str) -> None:
    token = tokens_for(client, ada, scope="openid offline_access")["refresh_token"]
    assert refresh(client, token, scope=ignored).json()["scope"] == "openid"


def test_ninety_days_from_the_last_use(hub: RunningHub, client: Client, ada: User) -> None:
    """Also where the answer was lost: what was given out before and what is given out again last as long."""
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
