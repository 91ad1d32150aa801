"""`/api/settings/applications` and the same of an organization: create, change, refresh secrets, delete."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from tests.bed.apps import create_app, tokens_for
from tests.bed.concurrency import run_concurrently
from tests.bed.dump import dump
from tests.bed.organizations import entries_of
from tests.bed.people import api, browser_of, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import own_account
from hubgate.server.accounts.model import Owner
from hubgate.server.audit.model import SYSTEM, Actor
from hubgate.server.errors import Forbidden
from hubgate.server.oauth.apps import management
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine

OWN = "/api/settings/applications"
ACME = "/api/organizations/acme/settings/applications"
REDIRECT = "https://app.example/callback"

OF_USER = {
    "clientId": "",
    "name": "Notebook",
    "homepage": "",
    "redirectUris": [],
    "postLogoutRedirectUris": [],
    "scopes": ["profile", "openid"],
    "requiredScopes": [],
    "confidential": True,
    "tokenLifetime": 28800,
    "requirePkce": False,
    "refreshTokens": False,
    "groupsClaim": False,
    "idTokenSignedResponseAlg": "RS256",
    "redirectMatch": "exact",
    "organization": None,
    "createdAt": "2026-09-21T14:13:20.000Z",
}
OF_ORGANIZATION = {
    **OF_USER,
    "organization": "acme",
    "tokenExchange": False,
    "tokenDuration": 28800,
    **{limit: [] for limit in ("allowedScopes", "allowedRoles", "allowedNetworks")},
    "dailyQuota": None,
    "paused": False,
}


def authenticates(hub: RunningHub, client_id: str, secret: str | None) -> bool:
    """At the token endpoint, with an invalid code: an authenticated client gets past client authentication."""
    form = {"grant_type": "refresh_token", "refresh_token": "x", "client_id": client_id}
    if secret is not None:
        form["client_secret"] = secret
    error = httpx.post(f"{hub.url}/oauth/token", data=form).json()["error"]
    assert error in ("invalid_client", "invalid_grant")
    return bool(error == "invalid_grant")


@pytest.mark.parametrize("path", [OWN, ACME])
def test_app_is_created_read_changed_and_deleted(hub: RunningHub, path: str) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    expected = OF_USER if path == OWN else OF_ORGANIZATION
    with api(hub, create_token(hub, ada)) as client:
        assert client.get(path).json() == []
        made = client.post(path, json={"name": " Note  book ".replace("  b", "b")})
        assert made.status_code == 201
        secret, client_id = made.json()["clientSecret"], made.json()["clientId"]
        described = {**expected, "clientId": client_id}
        assert made.json() == {**described, "clientSecret": secret}
        assert made.headers["cache-control"] == "no-store"
        assert client.get(path).json() == [described]
        one = f"{path}/{client_id}"
        assert client.get(one).json() == described
        assert authenticates(hub, client_id, secret)
        assert not authenticates(hub, client_id, None)

        changes = {
            "name": "Atlas",
            "homepage": "https://app.example",
            "redirectUris": [REDIRECT, "http://localhost/cb", "com.example.app:/cb", REDIRECT],
            "scopes": ["openid", "read-repos", "openid"],
            "requiredScopes": ["read-repos"],
            "tokenLifetime": 2592000,
            "requirePkce": True,
            "refreshTokens": True,
            "redirectMatch": "origin",
        }
        changed = client.patch(one, json=changes)
        assert changed.status_code == 200
        described |= changes
        described["redirectUris"] = changes["redirectUris"][:3]  # type: ignore[index]
        described["scopes"] = ["read-repos", "openid"]
        assert changed.json() == client.get(one).json() == described
        assert client.patch(one, json={}).json() == described

        assert client.delete(one).status_code == 204
        assert client.get(one).status_code == 404
        assert client.get(path).json() == []
        assert not authenticates(hub, client_id, secret)


def test_organization_limits_token_exchange(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    limits = {
        "tokenDuration": 2592000,
        "allowedScopes": ["read-repos"],
        "allowedRoles": ["read", "write"],
        "allowedNetworks": ["203.0.113.0/24", "2001:db8::/32", "198.51.100.7/32"],
        "dailyQuota": 1000,
        "paused": True,
    }
    with api(hub, create_token(hub, ada)) as client:
        one = f"{ACME}/{client.post(ACME, json={'name': 'Notebook'}).json()['clientId']}"
        given = {**limits, "allowedNetworks": ["203.0.113.0/24", "2001:DB8::/32", " 198.51.100.7"]}
        assert client.patch(one, json=given).status_code == 200
        assert {name: client.get(one).json()[name] for name in limits} == limits
        for bad in (
            {"tokenDuration": 59},
            {"tokenDuration": 2592001},
            {"tokenDuration": "8h"},
            {"allowedScopes": ["everything"]},
            {"allowedRoles": ["owner"]},
            {"allowedNetworks": ["203.0.113.7/24"]},
            {"allowedNetworks": ["example.org"]},
            {"dailyQuota": 0},
            {"tokenExchange": True},
        ):
            refused = client.patch(one, json=bad)
            assert refused.status_code == 422, bad
        assert {name: client.get(one).json()[name] for name in limits} == limits
        none = {"allowedScopes": [], "allowedRoles": [], "allowedNetworks": [], "dailyQuota": None, "paused": False}
        assert client.patch(one, json=none).json() == {**client.get(one).json(), **none}
        own = f"{OWN}/{client.post(OWN, json={'name': 'mine'}).json()['clientId']}"
        for name, value in limits.items():
            assert client.patch(own, json={name: value}).status_code == 422, "only an organization's app has it"


BAD_FIELDS: list[dict[str, Any]] = [
    {"name": ""},
    {"name": " "},
    {"name": "x" * 97},
    {"name": "a\u202eb"},
    {"name": "a\x00b"},
    {"name": 7},
    {"homepage": "javascript:alert(1)"},
    {"homepage": "https://a.example/ b"},
    {"scopes": ["read-repo"]},
    {"scopes": [""]},
    {"scopes": "openid"},
    {"requiredScopes": ["webhooks"]},
    {"tokenLifetime": 59},
    {"tokenLifetime": 2592001},
    {"tokenLifetime": 1.5},
    {"redirectMatch": "prefix"},
    {"redirectUris": [f"https://a.example/{number}" for number in range(51)]},
    {"requirePkce": "yes"},
    {"clientSecret": "mine"},
    {"client_id": "mine"},
    {"tokenExchange": True},
    {"owner": "ada"},
]


def test_unknown_or_forbidden_fields_change_nothing(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as client:
        made = client.post(OWN, json={"name": "Notebook"}).json()
        for bad in BAD_FIELDS:
            assert client.post(OWN, json={"name": "Second", **bad}).status_code == 422, bad
            refused = client.patch(f"{OWN}/{made['clientId']}", json=bad)
            assert refused.status_code == 422, bad
            assert refused.json()["error"]
            assert client.get(OWN).json() == [{name: made[name] for name in OF_USER}]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"scopes": ["openid", "reed-repos"]}, "There is no scope reed-repos. Did you mean read-repos?"),
        ({"scopes": ["fly"]}, "There is no scope fly. Ask the operator for extra scopes."),
        ({"scopes": ["openid profile"]}, "List each scope separately, without commas or spaces."),
        ({"scopes": ["openid,profile"]}, "List each scope separately, without commas or spaces."),
        ({"requiredScopes": ["webhooks"]}, "webhooks is required but not among the app's scopes."),
    ],
    ids=range(5),
)
def test_invalid_scope_is_explained(hub: RunningHub, given: dict[str, Any], says: str) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as client:
        assert says in client.post(OWN, json={"name": "Notebook", **given}).json()["error"]


def test_read_only_fields_may_be_sent_back_unchanged(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as client:
        for path in (OWN, ACME):
            one = f"{path}/{client.post(path, json={'name': 'Notebook'}).json()['clientId']}"
            read = client.get(one).json()
            assert client.patch(one, json={**read, "name": "Atlas"}).json() == {**read, "name": "Atlas"}
            for other in ({"clientId": "x"}, {"confidential": False}, {"organization": "x"}, {"createdAt": "now"}):
                assert client.patch(one, json=other).status_code == 422


def test_new_secret_with_an_overlap_keeps_the_old_one_valid(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as client:
        made = client.post(OWN, json={"name": "Notebook"}).json()
        client_id, first = made["clientId"], made["clientSecret"]
        address = f"{OWN}/{client_id}/secret"
        second = client.post(address, json={"overlapSeconds": 3600}).json()["clientSecret"]
        assert [authenticates(hub, client_id, secret) for secret in (first, second)] == [True, True]
        hub.clock.advance(3599)
        assert authenticates(hub, client_id, first)
        hub.clock.advance(1)
        assert [authenticates(hub, client_id, secret) for secret in (first, second)] == [False, True]
        third = client.post(address).json()["clientSecret"]
        assert [authenticates(hub, client_id, secret) for secret in (first, second, third)] == [False, False, True]
        for bad in ({"overlapSeconds": -1}, {"overlapSeconds": 604801}, {"overlap": 1}, {"overlapSeconds": "1"}):
            assert client.post(address, json=bad).status_code == 422
        assert authenticates(hub, client_id, third)
        # A later refresh without an overlap ends the secrets that an earlier one retained.
        fourth = client.post(address, json={"overlapSeconds": 604800}).json()["clientSecret"]
        last = client.post(address, json={}).json()["clientSecret"]
        assert [authenticates(hub, client_id, secret) for secret in (third, fourth, last)] == [False, False, True]


def test_number_of_old_secrets_is_limited(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as client:
        made = client.post(OWN, json={"name": "Notebook"}).json()
        address = f"{OWN}/{made['clientId']}/secret"
        answers = [client.post(address, json={"overlapSeconds": 604800}) for _ in range(6)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 422, 422]
        assert authenticates(hub, made["clientId"], made["clientSecret"]), "what was refused ended nothing"
        assert client.post(address).status_code == 200


def test_deleted_secret_can_be_replaced_by_a_new_one(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as client:
        made = client.post(OWN, json={"name": "Notebook"}).json()
        client_id, address = made["clientId"], f"{OWN}/{made['clientId']}/secret"
        for _ in range(2):
            public = client.delete(address)
            assert (public.status_code, public.json()["confidential"]) == (200, False)
        assert not authenticates(hub, client_id, made["clientSecret"])
        assert authenticates(hub, client_id, None)
        again = client.post(address).json()
        assert again["confidential"] is True
        assert authenticates(hub, client_id, again["clientSecret"])
        assert not authenticates(hub, client_id, None)


def test_public_app_has_no_secret(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as client:
        made = client.post(OWN, json={"name": "Notebook", "confidential": False}).json()
        assert (made["confidential"], made["requirePkce"]) == (False, True), "it always needs PKCE"
        assert "clientSecret" not in made
        assert authenticates(hub, made["clientId"], None)
        one = f"{OWN}/{made['clientId']}"
        assert client.patch(one, json={"requirePkce": False}).json()["requirePkce"] is True
        given = client.post(f"{one}/secret").json()
        assert (given["confidential"], given["requirePkce"]) == (True, False)
        assert client.delete(f"{one}/secret").json()["requirePkce"] is True


def test_number_out_of_range_is_answered_with_the_range(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as client:
        one = f"{ACME}/{client.post(ACME, json={'name': 'Notebook'}).json()['clientId']}"
        for name, sentence, least, limit in (
            ("tokenLifetime", "tokenLifetime must be 60 to 2,592,000 seconds.", 60, 2592000),
            ("tokenDuration", "tokenDuration must be 60 to 2,592,000 seconds.", 60, 2592000),
            ("dailyQuota", "A quota is a number from 1 to 1,000,000,000, or none.", 1, 1000000000),
        ):
            for value in (least - 1, limit + 1, -(10**30), 10**30):
                refused = client.patch(one, json={name: value})
                assert (refused.status_code, refused.json()["error"]) == (422, sentence)
            for value in (least, limit):
                assert client.patch(one, json={name: value}).json()[name] == value
        for value in (-1, 604801, 10**30):
            refused = client.post(f"{one}/secret", json={"overlapSeconds": value})
            assert (refused.status_code, refused.json()["error"]) == (
                422,
                "overlapSeconds must be 0 to 604,800 seconds.",
            )


def test_secrets_are_stored_hashed_and_never_logged(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as client:
        made = client.post(OWN, json={"name": "Notebook"}).json()
        other = client.post(f"{OWN}/{made['clientId']}/secret", json={"overlapSeconds": 60}).json()
        authenticates(hub, made["clientId"], other["clientSecret"] + "x")
    dumped = hub.call(dump)
    assert made["clientId"].encode() in dumped, "the dump is complete"
    for secret in (made["clientSecret"], other["clientSecret"]):
        # Without the last four characters, which are stored to recognise it.
        assert secret[5:-4].encode() not in dumped
        assert secret not in hub.log


def test_deleting_an_app_ends_its_consents_and_tokens(hub: RunningHub) -> None:
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    acme = create_organization(hub, "acme", olga)
    for app, path in ((create_app(hub, olga), OWN), (create_app(hub, organization=acme), ACME)):
        token = tokens_for(app, ada)["access_token"]
        with api(hub, token) as consented, api(hub, create_token(hub, olga)) as owner:
            assert consented.get("/oauth/userinfo").status_code == 200
            assert owner.delete(f"{path}/{app.id}").status_code == 204
            assert consented.get("/oauth/userinfo").status_code == 401
            assert consented.get("/api/whoami-v2").status_code == 401
        with browser_of(hub, ada) as browser:
            assert browser.get(app.address()).status_code == 400


def test_apps_are_deleted_with_their_owner(hub: RunningHub) -> None:
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    token = tokens_for(create_app(hub, olga), ada)["access_token"]

    async def leave(opened: Hub) -> None:
        await own_account.delete(opened.accounts, olga, SYSTEM)

    with api(hub, token) as consented:
        assert consented.get("/oauth/userinfo").status_code == 200
        hub.call(leave)
        assert consented.get("/oauth/userinfo").status_code == 401


def test_only_the_owner_and_admins_have_access(hub: RunningHub) -> None:
    ada, bob, eve = create_user(hub, "ada"), create_user(hub, "bob"), create_user(hub, "eve")
    acme = create_organization(hub, "acme", ada, bob="write")
    mine, ours = create_app(hub, ada), create_app(hub, organization=acme)

    def answers(token: str | None, path: str, client_id: str) -> list[int]:
        with api(hub, token) as client:
            one = f"{path}/{client_id}"
            return [
                client.get(path).status_code,
                client.get(one).status_code,
                client.post(path, json={"name": "x"}).status_code,
                client.patch(one, json={"name": "x"}).status_code,
                client.post(f"{one}/secret").status_code,
                client.delete(f"{one}/secret").status_code,
                client.delete(one).status_code,
            ]

    assert answers(None, OWN, mine.id) == [401] * 7
    assert answers(None, ACME, ours.id) == [401] * 7
    for stranger in (bob, eve):
        token = create_token(hub, stranger)
        assert answers(token, OWN, mine.id) == [200, 404, 201, 404, 404, 404, 404]
        assert answers(token, OWN, ours.id) == [200, 404, 201, 404, 404, 404, 404]
        assert answers(token, ACME, ours.id) == [403] * 7
    reader = create_token(hub, ada, "read")
    assert answers(reader, OWN, mine.id) == [200, 200, 403, 403, 403, 403, 403]
    assert answers(reader, ACME, ours.id) == [200, 200, 403, 403, 403, 403, 403]
    # An organization's app does not belong to its admin, and an admin's app does not belong to the organization.
    admin = create_token(hub, ada)
    assert answers(admin, OWN, ours.id)[1:2] == [404]
    assert answers(admin, ACME, mine.id)[1:2] == [404]
    assert answers(admin, ACME, ours.id) == [200, 200, 201, 200, 200, 200, 204]


def test_tokens_of_apps_are_rejected(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    scopes = ("openid", "profile", "manage-repos", "webhooks", "read-billing")
    token = tokens_for(create_app(hub, ada, scopes=scopes), ada, orgIds=acme.id)["access_token"]
    with api(hub, token) as client:
        for path in (OWN, ACME):
            for answer in (client.get(path), client.post(path, json={"name": "x"}), client.get(f"{path}/x")):
                assert answer.status_code == 403
                assert "No app can" in answer.json()["error"]


def test_o61_session_cookie_is_ignored(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with browser_of(hub, ada) as browser:
        assert {browser.get(path).status_code for path in (OWN, ACME)} == {401}
        assert browser.post(OWN, json={"name": "x"}).status_code == 401


def test_every_change_of_an_organizations_app_is_in_its_audit_log(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada, name="ci")) as client:
        # Entries of the same moment have no order.
        client.event_hooks["request"] = [lambda _: hub.clock.advance(1)]
        made = client.post(ACME, json={"name": "Notebook"}).json()
        one, about = f"{ACME}/{made['clientId']}", {"clientId": made["clientId"], "name": "Notebook"}
        client.patch(one, json={"redirectUris": [REDIRECT], "tokenDuration": 60})
        client.patch(one, json={"redirectUris": [REDIRECT]})
        client.patch(one, json={"redirectUris": ["http://evil.example"]})
        client.post(f"{one}/secret", json={"overlapSeconds": 5})
        client.delete(f"{one}/secret")
        client.delete(f"{one}/secret")
        client.delete(one)
        client.post(OWN, json={"name": "not the organization's"})
    entries = [entry for entry in entries_of(hub, acme) if entry["type"].startswith("oauth.")]
    changes = {"redirectUris": [REDIRECT], "tokenDuration": 60}
    assert [(entry["type"], entry["message"], entry["data"]) for entry in entries] == [
        ("oauth.create_app", "created the app Notebook", about),
        (
            "oauth.update_app",
            "changed the app Notebook: redirectUris, tokenDuration",
            {**about, "changes": changes},
        ),
        ("oauth.refresh_secret", "created a new secret for the app Notebook", {**about, "overlapSeconds": 5}),
        ("oauth.delete_secret", "deleted the secret of the app Notebook", about),
        ("oauth.delete_app", "deleted the app Notebook", about),
    ]
    assert {entry["author_name"] for entry in entries} == {"ada"}
    assert all('"role":"write"' in entry["token"] for entry in entries)
    assert made["clientSecret"] not in str(entries)


def test_number_of_apps_is_limited(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as client:
        for number in range(200):
            assert client.post(OWN, json={"name": f"number {number}", "confidential": False}).status_code == 201
        refused = client.post(OWN, json={"name": "one more"})
        assert refused.status_code == 422
        assert "Delete one first." in refused.json()["error"]
        assert len(client.get(OWN).json()) == 200


def test_concurrent_changes_are_all_applied(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    token = create_token(hub, ada)
    changes: list[dict[str, Any]] = [
        {"name": "Atlas"},
        {"homepage": "https://app.example"},
        {"redirectUris": [REDIRECT]},
        {"tokenLifetime": 60},
        {"requirePkce": True},
        {"refreshTokens": True},
        {"redirectMatch": "origin"},
    ]
    with api(hub, token) as client:
        made = client.post(OWN, json={"name": "Notebook"}).json()
        one = f"{OWN}/{made['clientId']}"

        def patch(change: dict[str, Any]) -> Callable[[], httpx.Response]:
            return lambda: client.patch(one, json=change)

        secret = [lambda: client.delete(f"{one}/secret")]
        answers = run_concurrently([*map(patch, changes), *secret])
        assert {answer.status_code for answer in answers} == {200}
        said = client.get(one).json()
    assert {name: said[name] for change in changes for name in change} == {
        name: value for change in changes for name, value in change.items()
    }
    assert said["confidential"] is False
    assert not authenticates(hub, made["clientId"], made["clientSecret"])


def test_admin_demoted_during_the_request_changes_nothing(hub: RunningHub) -> None:
    """The request was authorized while they were admin; the permission is checked again at the change."""
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="write")
    client = create_app(hub, organization=acme)
    late = Actor("bob", bob.id)

    async def work(opened: Hub) -> list[str]:
        oauth, app, refused = opened.oauth, client.app, []
        for attempt in (
            management.create(oauth, Owner(org_id=acme.id), replace(app, client_id=""), late),
            management.update(oauth, app, lambda latest: replace(latest, name="taken over"), late),
            management.refresh_secret(oauth, app, 0, late),
            management.delete_secret(oauth, app, late),
            management.delete(oauth, app, late),
        ):
            try:
                await attempt
            except Forbidden as error:
                refused.append(error.message)
        return refused

    assert hub.call(work) == ["You are no longer an admin of acme."] * 5
    assert authenticates(hub, client.id, client.secret)
    kinds = sorted(entry["type"] for entry in entries_of(hub, acme))
    assert kinds == ["oauth.create_app", "org.add_user", "org.create"]
