"""Token exchange in the API: what an organization's admins see and do, and what a member sees."""

from functools import partial
from typing import Any

import httpx
import pytest
from tests.bed.apps import Client
from tests.bed.exchange import create_exchange_app, exchange_token, send_exchange
from tests.bed.organizations import entries_of
from tests.bed.people import api, browser_of, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub
from tests.protocol.test_paging import next_of

from hubgate.server.accounts import store
from hubgate.server.accounts.model import Organization, User
from hubgate.server.resources import Hub

ACME = "/api/organizations/acme/settings/applications"
OWN = "/api/settings/exchanged-tokens"


@pytest.fixture
def ada(hub: RunningHub) -> User:
    return create_user(hub, "ada")


@pytest.fixture
def acme(hub: RunningHub, ada: User) -> Organization:
    create_user(hub, "bob")
    return create_organization(hub, "acme", ada, bob="write")


@pytest.fixture
def client(hub: RunningHub, acme: Organization) -> Client:
    made = create_exchange_app(hub, acme)
    hub.clock.advance(1)
    return made


def works(hub: RunningHub, token: str) -> bool:
    with api(hub, token) as program:
        return program.get("/api/whoami-v2").status_code == 200


def tokens_of(script: httpx.Client, client: Client, **query: str) -> list[dict[str, Any]]:
    answer = script.get(f"{ACME}/{client.id}/tokens", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found


def try_out(script: httpx.Client, client: Client, email: str, **more: Any) -> dict[str, Any]:
    answer = script.post(f"{ACME}/{client.id}/exchange/dry-run", json={"subjectToken": email, **more})
    assert answer.status_code == 200, answer.text
    said: dict[str, Any] = answer.json()
    return said


@pytest.mark.one_engine
def test_dry_run_says_what_would_be_issued(hub: RunningHub, ada: User, client: Client) -> None:
    with api(hub, create_token(hub, ada)) as script:
        script.patch(f"{ACME}/{client.id}", json={"tokenDuration": 3600})
        said = try_out(script, client, "Bob@Example.org")
        assert said.pop("scopes") == list(client.app.scopes)
        assert said == {"granted": True, "user": "bob", "role": "write", "expiresIn": 3600}
        assert try_out(script, client, "bob@example.org", scope="read-repos")["scopes"] == ["read-repos"]
        for email, more, error, reason in (
            ("eve@example.org", {}, "invalid_grant", "nobody in the organization has this address"),
            ("bob", {}, "invalid_request", "subject_token must be the e-mail address of a member."),
            ("bob@example.org", {"scope": "jobs"}, "invalid_scope", None),
            ("bob@example.org", {"scope": "fly"}, "invalid_scope", None),
        ):
            refused = try_out(script, client, email, **more)
            assert (refused["granted"], refused["error"]) == (False, error)
            assert reason is None or refused["reason"] == reason
            assert set(refused) == {"granted", "error", "reason"}


@pytest.mark.one_engine
def test_dry_run_checks_every_limit(hub: RunningHub, ada: User, client: Client) -> None:
    limits = {"allowedRoles": ["admin"], "allowedNetworks": ["203.0.113.0/24"], "allowedScopes": ["openid"]}
    with api(hub, create_token(hub, ada)) as script:
        script.patch(f"{ACME}/{client.id}", json=limits)
        assert try_out(script, client, "bob@example.org")["reason"] == "bob has the role write, which is not allowed"
        assert try_out(script, client, "ada@example.org")["scopes"] == ["openid"]
        assert try_out(script, client, "ada@example.org", ip="::ffff:203.0.113.9")["granted"] is True
        elsewhere = try_out(script, client, "ada@example.org", ip="198.51.100.1")
        assert (elsewhere["error"], "address" in elsewhere["reason"]) == ("invalid_client", True)
        script.patch(f"{ACME}/{client.id}", json={"allowedNetworks": [], "paused": True})
        assert "paused" in try_out(script, client, "ada@example.org")["reason"]
        script.patch(f"{ACME}/{client.id}", json={"paused": False})
        script.delete(f"{ACME}/{client.id}/secret")
        assert "secret" in try_out(script, client, "ada@example.org")["reason"]


@pytest.mark.one_engine
def test_dry_run_counts_and_records_nothing(hub: RunningHub, ada: User, acme: Organization, client: Client) -> None:
    with api(hub, create_token(hub, ada)) as script:
        script.patch(f"{ACME}/{client.id}", json={"dailyQuota": 2})
        before = entries_of(hub, acme)
        for _ in range(5):
            assert try_out(script, client, "bob@example.org")["granted"] is True
        assert entries_of(hub, acme) == before
        assert tokens_of(script, client) == []
        for _ in range(2):
            exchange_token(client, "bob@example.org")
        full = try_out(script, client, "bob@example.org")
        assert (full["error"], "quota" in full["reason"]) == ("temporarily_unavailable", True)
        hub.clock.advance(24 * 3600)
        assert try_out(script, client, "bob@example.org")["granted"] is True


@pytest.mark.one_engine
@pytest.mark.parametrize(
    "body", [{}, {"subjectToken": ""}, {"subjectToken": "a@b.org", "ip": "home"}, {"subjectToken": "a@b.org", "x": 1}]
)
def test_invalid_dry_run_is_rejected(hub: RunningHub, ada: User, client: Client, body: dict[str, Any]) -> None:
    with api(hub, create_token(hub, ada)) as script:
        assert script.post(f"{ACME}/{client.id}/exchange/dry-run", json=body).status_code == 422


def test_live_tokens_are_listed_in_pages(hub: RunningHub, ada: User, client: Client) -> None:
    for number in range(5):
        exchange_token(client, "bob@example.org" if number % 2 else "ada@example.org", scope="read-repos openid")
        hub.clock.advance(1)
    with api(hub, create_token(hub, ada, "read")) as script:
        seen: list[dict[str, Any]] = []
        url: str | None = f"{ACME}/{client.id}/tokens?limit=2"
        while url:
            answer = script.get(url)
            seen += answer.json()
            url = next_of(answer)
        assert [token["user"] for token in seen] == ["ada", "bob", "ada", "bob", "ada"]
        assert seen == sorted(seen, key=lambda token: str(token["createdAt"]), reverse=True)
        first = seen[0]
        assert len(first.pop("id")) == 24
        assert first == {
            "clientId": client.id,
            "app": "Notebook",
            "organization": "acme",
            "user": "ada",
            "scopes": ["read-repos", "openid"],
            "createdAt": "2026-09-21T14:13:25.000Z",
            "expiresAt": "2026-09-21T22:13:25.000Z",
        }
        assert [token["user"] for token in tokens_of(script, client, user="BOB")] == ["bob", "bob"]
        assert script.get(f"{ACME}/{client.id}/tokens?user=ghost").status_code == 404
        hub.clock.advance(8 * 3600 - 3)
        assert len(tokens_of(script, client)) == 2, "what has expired is not alive"


def test_one_token_can_be_revoked(hub: RunningHub, ada: User, acme: Organization, client: Client) -> None:
    one, other = (exchange_token(client, "bob@example.org")["access_token"] for _ in range(2))
    token_id = entries_of(hub, acme)[-1]["data"]["tokenId"]
    hub.clock.advance(1)
    with api(hub, create_token(hub, ada)) as script:
        assert script.delete(f"{ACME}/{client.id}/tokens/{token_id}").status_code == 204
        assert sorted([works(hub, one), works(hub, other)]) == [False, True]
        for unknown in (token_id, "0" * 24, "%00"):
            assert script.delete(f"{ACME}/{client.id}/tokens/{unknown}").status_code in (400, 404)
        (left,) = tokens_of(script, client)
        assert left["id"] != token_id
    last = entries_of(hub, acme)[-1]
    assert (last["type"], last["author_name"]) == ("oauth.revoke_tokens", "ada")
    assert last["message"] == "revoked 1 exchanged token of the app Notebook"
    assert (last["data"]["ended"], last["data"]["tokenId"]) == (1, token_id)


def test_tokens_of_a_member_and_all_tokens_can_be_revoked(
    hub: RunningHub, ada: User, acme: Organization, client: Client
) -> None:
    other = create_exchange_app(hub, acme, name="Other")
    hub.clock.advance(1)
    mine, theirs, elsewhere = (
        exchange_token(client, "ada@example.org")["access_token"],
        [exchange_token(client, "bob@example.org")["access_token"] for _ in range(3)],
        exchange_token(other, "bob@example.org")["access_token"],
    )
    with api(hub, create_token(hub, ada)) as script:
        path = f"{ACME}/{client.id}/tokens"
        assert script.delete(path, params={"user": "bob"}).json() == {"revoked": 3}
        assert [works(hub, token) for token in (mine, *theirs, elsewhere)] == [True, False, False, False, True]
        assert script.delete(path, params={"user": "bob"}).json() == {"revoked": 0}
        hub.clock.advance(1)
        assert script.delete(path).json() == {"revoked": 1}
        assert [works(hub, token) for token in (mine, elsewhere)] == [False, True]
    ended = [entry["data"]["ended"] for entry in entries_of(hub, acme) if entry["type"] == "oauth.revoke_tokens"]
    assert ended == [3, 1], "nothing is recorded where nothing ended"


def test_tokens_issued_in_a_period_can_be_revoked(hub: RunningHub, ada: User, client: Client) -> None:
    tokens = []
    for _ in range(6):
        tokens.append(exchange_token(client, "bob@example.org")["access_token"])
        hub.clock.advance(60.5)
    with api(hub, create_token(hub, ada)) as script:
        path = f"{ACME}/{client.id}/tokens"
        made = [token["createdAt"] for token in tokens_of(script, client)][::-1]
        assert script.delete(path, params={"since": made[1], "until": made[2]}).json() == {"revoked": 2}
        assert [works(hub, token) for token in tokens] == [True, False, False, True, True, True]
        # As written on a page: the whole minute.
        assert script.delete(path, params={"until": made[0][:16]}).json() == {"revoked": 1}
        assert script.delete(path, params={"since": made[5], "user": "ada"}).json() == {"revoked": 0}
        assert script.delete(path, params={"since": made[4]}).json() == {"revoked": 2}
        assert [works(hub, token) for token in tokens] == [False, False, False, True, False, False]


@pytest.mark.one_engine
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("usr=bob", 400),
        ("user=", 400),
        ("since=&until=2026-01-01", 400),
        ("user=bob&user=ada", 400),
        ("since=yesterday", 422),
        ("since=2026-13-01", 422),
        ("since=2026-01-01T00:00:00+00:00", 422),
        ("since=2026-02-01&until=2026-01-01", 422),
        ("user=ghost", 404),
    ],
)
def test_malformed_request_does_not_revoke_everything(
    hub: RunningHub, ada: User, client: Client, query: str, status: int
) -> None:
    token = exchange_token(client, "bob@example.org")["access_token"]
    with api(hub, create_token(hub, ada)) as script:
        assert script.delete(f"{ACME}/{client.id}/tokens?{query}").status_code == status
    assert works(hub, token)


@pytest.mark.one_engine
def test_only_admins_have_access(hub: RunningHub, ada: User, acme: Organization, client: Client) -> None:
    create_organization(hub, "other", create_user(hub, "eve"))
    token = exchange_token(client, "ada@example.org")["access_token"]
    path, dry = f"{ACME}/{client.id}/tokens", f"{ACME}/{client.id}/exchange/dry-run"
    body = {"subjectToken": "bob@example.org"}
    with api(hub, create_token(hub, ada, "read")) as reader:
        assert reader.get(path).status_code == 200
        assert [reader.delete(path).status_code, reader.post(dry, json=body).status_code] == [403, 403]
    for name in ("bob", "eve"):
        user = hub.call(partial(_user, name=name))
        with api(hub, create_token(hub, user)) as script:
            answers = script.get(path), script.delete(path), script.post(dry, json=body)
            assert [answer.status_code for answer in answers] == [403, 403, 403]
            elsewhere = path.replace("acme", "other")
            assert script.get(elsewhere).status_code == (404 if name == "eve" else 403)
    with api(hub, token) as program:
        for answer in (program.get(path), program.delete(path), program.post(dry, json=body), program.get(OWN)):
            assert answer.status_code == 403, "no token of an app's opens this"
    with api(hub) as nobody:
        assert nobody.get(path).status_code == 401
    assert works(hub, token)


async def _user(opened: Hub, name: str) -> User:
    user = await store.user_by_name(opened.db, name)
    assert user is not None
    return user


@pytest.mark.one_engine
def test_member_sees_tokens_issued_for_them(hub: RunningHub, ada: User, client: Client) -> None:
    bob = hub.call(lambda opened: _user(opened, "bob"))
    text = exchange_token(client, "bob@example.org", scope="read-repos")["access_token"]
    exchange_token(client, "ada@example.org")
    send_exchange(client, "nobody@example.org")
    with api(hub, create_token(hub, bob, "read")) as script, browser_of(hub, bob) as browser:
        (taken,) = script.get(OWN).json()
        assert (taken["app"], taken["organization"], taken["user"]) == ("Notebook", "acme", "bob")
        assert taken["scopes"] == ["read-repos"]
        saved = browser.get("/settings/export")
        assert saved.json()["exchangedTokens"] == [taken]
        assert text not in saved.text
    with api(hub, create_token(hub, ada)) as script:
        script.delete("/api/organizations/acme/members/bob")
    with api(hub, create_token(hub, bob)) as script, browser_of(hub, bob) as browser:
        assert script.get(OWN).json() == []
        assert browser.get("/settings/export").json()["exchangedTokens"] == []
    assert not works(hub, text)
