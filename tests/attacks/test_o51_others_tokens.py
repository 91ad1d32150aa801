"""O51: an app may introspect the tokens of its owner's apps, and revoke its own."""

import pytest
from tests.bed.apps import create_app, tokens_for
from tests.bed.people import api, create_organization, create_user
from tests.bed.running_hub import RunningHub

INACTIVE = {"active": False}


@pytest.mark.one_engine
def test_o51_introspection_answers_apps_of_the_same_owner_only(hub: RunningHub) -> None:
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    client = create_app(hub, olga, refresh_tokens=True)
    sibling, stranger = create_app(hub, olga), create_app(hub, ada)
    of_organization = create_app(hub, organization=create_organization(hub, "acme", olga))
    tokens = tokens_for(client, ada)
    for token in (tokens["access_token"], tokens["refresh_token"]):
        for asking in (client, sibling):
            said = asking.post("/oauth/introspect", {"token": token}).json()
            assert (said["active"], said["sub"], said["client_id"]) == (True, ada.id, client.id)
        for asking in (stranger, of_organization):
            assert asking.post("/oauth/introspect", {"token": token}).json() == INACTIVE
    for other in ("nonsense", "hf_" + "a" * 41):
        assert client.post("/oauth/introspect", {"token": other}).json() == INACTIVE


@pytest.mark.one_engine
def test_o51_apps_of_one_organization_may_introspect_each_others_tokens(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme, other = create_organization(hub, "acme", ada), create_organization(hub, "other", ada)
    client, sibling = create_app(hub, organization=acme, refresh_tokens=True), create_app(hub, organization=acme)
    stranger, tokens = create_app(hub, organization=other), tokens_for(client, ada)
    for token in (tokens["access_token"], tokens["refresh_token"]):
        assert sibling.post("/oauth/introspect", {"token": token}).json()["active"] is True
        assert stranger.post("/oauth/introspect", {"token": token}).json() == INACTIVE


@pytest.mark.one_engine
def test_o51_app_can_revoke_only_its_own_tokens(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    client = create_app(hub, ada, refresh_tokens=True)
    tokens = tokens_for(client, ada)
    for asking in (create_app(hub, ada), create_app(hub, create_user(hub, "olga"))):
        for token in (tokens["access_token"], tokens["refresh_token"]):
            response = asking.post("/oauth/revoke", {"token": token})
            assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
    with api(hub, tokens["access_token"]) as app:
        assert app.get("/oauth/userinfo").status_code == 200
        assert client.post("/oauth/revoke", {"token": tokens["refresh_token"]}).status_code == 200
        assert app.get("/oauth/userinfo").status_code == 401, "the family ended with its refresh token"
    for unknown in ("nonsense", tokens["access_token"]):
        assert client.post("/oauth/revoke", {"token": unknown}).status_code == 200
