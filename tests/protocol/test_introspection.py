"""Introspection (RFC 7662) answers what the next use of a token would find."""

from urllib.parse import quote

import pytest
from tests.bed.apps import Client, create_app, tokens_for
from tests.bed.call_counts import calls_on_loop
from tests.bed.people import api, create_token, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import operator_actions
from hubgate.server.accounts.model import User
from hubgate.server.clock import SECOND

INACTIVE = {"active": False}
DAY = 24 * 60 * 60


@pytest.fixture
def ada(hub: RunningHub) -> User:
    return create_user(hub, "ada")


@pytest.fixture
def client(hub: RunningHub) -> Client:
    return create_app(hub, create_user(hub, "olga"), refresh_tokens=True)


def about(client: Client, token: str) -> dict[str, object]:
    response = client.post("/oauth/introspect", {"token": token})
    assert response.status_code == 200, response.text
    said: dict[str, object] = response.json()
    return said


@pytest.mark.one_engine
def test_both_kinds_of_token_are_described(hub: RunningHub, client: Client, ada: User) -> None:
    now = hub.clock() // SECOND
    tokens = tokens_for(client, ada, scope="openid email")
    same = {
        "active": True,
        "scope": "openid email",
        "client_id": client.id,
        "username": "ada",
        "sub": ada.id,
        "aud": client.id,
        "iss": hub.url,
    }
    assert about(client, tokens["access_token"]) == {**same, "exp": now + 28800, "iat": now, "token_type": "bearer"}
    assert about(client, tokens["refresh_token"]) == {**same, "exp": now + 90 * DAY}
    hub.clock.advance(28800)
    assert about(client, tokens["access_token"]) == INACTIVE
    hub.clock.advance(90 * DAY - 28801)
    assert about(client, tokens["refresh_token"])["active"] is True
    hub.clock.advance(1)
    assert about(client, tokens["refresh_token"]) == INACTIVE


def test_refresh_token_stays_active_for_a_minute_after_its_successor_was_used(
    hub: RunningHub, client: Client, ada: User
) -> None:
    first = tokens_for(client, ada)["refresh_token"]
    form = {"grant_type": "refresh_token"}
    second = client.post("/oauth/token", {**form, "refresh_token": first}).json()["refresh_token"]
    assert about(client, first)["active"] is True
    assert client.post("/oauth/token", {**form, "refresh_token": second}).status_code == 200
    assert about(client, first)["exp"] == hub.clock() // SECOND + 60
    hub.clock.advance(61)
    assert about(client, first) == INACTIVE
    assert about(client, second)["active"] is True, "asking ends nothing"


@pytest.mark.one_engine
def test_revoked_consent_makes_tokens_inactive(hub: RunningHub, client: Client, ada: User) -> None:
    token = tokens_for(client, ada)["refresh_token"]
    with api(hub, create_token(hub, ada)) as script:
        address = f"/api/settings/connected-apps/{quote(client.id)}"
        script.patch(address, json={"scopes": ["openid"]})
        assert about(client, token)["scope"] == "openid"
        script.patch(address, json={"scopes": []})
        assert about(client, token) == INACTIVE
        script.delete(address)
        assert about(client, token) == INACTIVE


@pytest.mark.one_engine
def test_disabled_users_tokens_are_inactive(hub: RunningHub, client: Client, ada: User) -> None:
    tokens = tokens_for(client, ada)
    hub.call(lambda opened: operator_actions.disable(opened.accounts, ada))
    for kind in ("access_token", "refresh_token"):
        assert about(client, tokens[kind]) == INACTIVE


def test_signature_is_verified_for_authenticated_apps_only(sqlite_hub: RunningHub) -> None:
    """It takes longer to verify than everything else of a request."""
    app = create_app(sqlite_hub, create_user(sqlite_hub, "olga"))
    with sqlite_hub.client() as stranger, calls_on_loop(sqlite_hub) as calls:
        sent = {"token": "e30.e30.e30"}
        assert stranger.post("/oauth/introspect", data=sent, auth=(app.id, "wrong")).status_code == 401
        assert calls["verified_claims"] == 0
        assert about(app, sent["token"]) == INACTIVE
        assert calls["verified_claims"] > 0
