"""Tokens for an organization's members, by their e-mail addresses (RFC 8693)."""

from typing import Any

import pytest
from tests.bed.apps import SCOPES, create_app
from tests.bed.exchange import ACCESS_TOKEN, create_exchange_app, exchange_token, send_exchange
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import Organization, User


def audit(hub: RunningHub, admin: User, organization: Organization) -> list[dict[str, Any]]:
    with api(hub, create_token(hub, admin)) as script:
        entries = script.get(f"/api/organizations/{organization.name}/audit-log/export?q=type:oauth.token").json()
    return list(entries)


@pytest.mark.one_engine
def test_token_is_issued_for_a_member(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="read")
    create_organization(hub, "other", bob)
    client = create_exchange_app(hub, acme)
    answer = exchange_token(client, "Bob@Example.org")
    assert (answer["token_type"], answer["expires_in"]) == ("bearer", 28800)
    assert set(answer["scope"].split()) == set(SCOPES)
    assert answer["issued_token_type"] == ACCESS_TOKEN
    assert "refresh_token" not in answer
    assert "id_token" in answer
    with api(hub, answer["access_token"]) as program:
        whoami = program.get("/api/whoami-v2").json()
        userinfo = program.get("/oauth/userinfo").json()
    assert (whoami["name"], [org["name"] for org in whoami["orgs"]]) == ("bob", ["acme"])
    assert [org["preferred_username"] for org in userinfo["organizations"]] == ["acme"]
    (entry,) = audit(hub, ada, acme)
    assert (entry["type"], entry["oauth"]) == ("oauth.token", {"clientId": client.id, "name": "Notebook"})
    assert (entry["data"]["result"], entry["data"]["user"], entry["ip"]) == ("granted", "bob", "127.0.0.1")
    assert set(entry["data"]["scope"].split()) == set(SCOPES)


@pytest.mark.one_engine
def test_fewer_scopes_may_be_requested(hub: RunningHub) -> None:
    acme = create_organization(hub, "acme", create_user(hub, "ada"))
    answer = exchange_token(create_exchange_app(hub, acme), "ada@example.org", scope="read-repos")
    assert answer["scope"] == "read-repos"
    assert "id_token" not in answer


@pytest.mark.one_engine
@pytest.mark.parametrize(
    ("email", "more", "status", "error"),
    [
        ("nobody@example.org", {}, 400, "invalid_grant"),
        ("eve@example.org", {}, 400, "invalid_grant"),
        ("ada@example.org", {"scope": "fly"}, 400, "invalid_scope"),
        ("ada@example.org", {"scope": "manage-repos"}, 400, "invalid_scope"),
        ("ada", {}, 400, "invalid_request"),
        ("ada@example.org", {"subject_token_type": ACCESS_TOKEN}, 400, "invalid_request"),
        ("ada@example.org", {"requested_token_type": "urn:x"}, 400, "invalid_request"),
    ],
)
def test_invalid_exchanges_are_rejected(
    hub: RunningHub, email: str, more: dict[str, str], status: int, error: str
) -> None:
    create_user(hub, "eve")
    acme = create_organization(hub, "acme", create_user(hub, "ada"))
    answer = send_exchange(create_exchange_app(hub, acme), email, **more)
    assert (answer.status_code, answer.json()["error"]) == (status, error), answer.text


@pytest.mark.one_engine
def test_exchange_requires_basic_authentication_and_the_privilege(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    privileged, plain, own = create_exchange_app(hub, acme), create_app(hub, organization=acme), create_app(hub, ada)
    for client in (plain, own):
        answer = send_exchange(client, "ada@example.org")
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    with hub.client() as http:
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token": "ada@example.org",
            "subject_token_type": "urn:service:token-type:user-email",
            "client_id": privileged.id,
            "client_secret": privileged.secret or "",
        }
        answer = http.post("/oauth/token", data=form)
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    assert [entry["data"]["result"] for entry in audit(hub, ada, acme)] == ["refused"] * 2
