"""Scopes, roles and namespaces are checked before a request is forwarded or answered with 501 (SEED.md 2.6, 5.3)."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.bed.apps import Client, approve, create_app, pkce_pair, redirect_parameters
from tests.bed.engines import Engine, settings_for
from tests.bed.exchange import create_exchange_app, exchange_token
from tests.bed.people import api, browser_of, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.upstream import Upstream, verified_claims
from tests.gateway.conftest import Stage, set_stage

from hubgate.server.accounts.model import Organization, User
from hubgate.server.scopes import SCOPE_NAMES

ALL = tuple(sorted(SCOPE_NAMES))
Call = Callable[[httpx.Client, str], httpx.Response]

# By scope; each call takes the name of the namespace.
CALLS: dict[str, dict[str, Call]] = {
    "inference-api": {
        "complete": lambda client, name: client.post("/v1/chat/completions", json={}, headers=bill_to(name)),
        "models": lambda client, name: client.get("/v1/models", headers=bill_to(name)),
    },
    "jobs": {
        "list": lambda client, name: client.get(f"/api/jobs/{name}"),
        "logs": lambda client, name: client.get(f"/api/jobs/{name}/1/logs"),
        "run": lambda client, name: client.post(f"/api/jobs/{name}", json={}),
        "cancel": lambda client, name: client.post(f"/api/jobs/{name}/1/cancel"),
        "label": lambda client, name: client.put(f"/api/jobs/{name}/1/labels", json={}),
        "schedules": lambda client, name: client.get(f"/api/scheduled-jobs/{name}"),
        "schedule": lambda client, name: client.post(f"/api/scheduled-jobs/{name}", json={}),
        "unschedule": lambda client, name: client.delete(f"/api/scheduled-jobs/{name}/1"),
        "hardware": lambda client, name: client.get("/api/jobs/hardware", headers=bill_to(name)),
    },
}
READS_OF_JOBS = {"list", "logs", "schedules", "hardware"}


def bill_to(name: str) -> dict[str, str]:
    return {"x-hf-bill-to": name} if name else {}


def statuses(hub: RunningHub, token: str | None, scope: str, namespace: str) -> dict[str, int]:
    with api(hub, token) as client:
        return {name: call(client, namespace).status_code for name, call in CALLS[scope].items()}


def all_are(status: int, scope: str) -> dict[str, int]:
    return dict.fromkeys(CALLS[scope], status)


def consented(app: Client, user: User, scopes: str, *organizations: Organization) -> str:
    verifier, challenge = pkce_pair()
    address = app.address(scope=scopes, code_challenge=challenge, code_challenge_method="S256", prompt="consent")
    with browser_of(app.hub, user) as browser:
        sent = approve(browser, address, orgs=[organization.id for organization in organizations])
    given: dict[str, str] = app.redeem(redirect_parameters(sent)["code"], code_verifier=verifier).json()
    return given["access_token"]


@pytest.mark.one_engine
@pytest.mark.parametrize("scope", CALLS)
def test_each_scope_opens_its_service_only(stage: Stage, scope: str) -> None:
    hub, app = stage.hub, create_app(stage.hub, stage.ada, scopes=ALL)
    allowed = consented(app, stage.ada, f"openid {scope}", stage.acme)
    refused = consented(app, stage.ada, " ".join(name for name in ALL if name != scope), stage.acme)
    for namespace in ("ada", "acme"):
        assert statuses(hub, allowed, scope, namespace) == all_are(200, scope)
        assert statuses(hub, refused, scope, namespace) == all_are(403, scope)
        other = next(name for name in CALLS if name != scope)
        assert statuses(hub, allowed, other, namespace) == all_are(403, other)
    with api(hub, refused) as client:
        answer = CALLS[scope][next(iter(CALLS[scope]))](client, "ada")
        challenge = answer.headers["www-authenticate"]
        assert f'error="insufficient_scope", scope="{scope}"' in challenge
        assert f'resource_metadata="{hub.url}/.well-known/oauth-protected-resource"' in challenge
        assert scope in answer.headers["x-error-message"]


@pytest.mark.one_engine
@pytest.mark.parametrize("scope", CALLS)
def test_app_without_the_organization_reaches_only_the_user(stage: Stage, upstream: Upstream, scope: str) -> None:
    app = create_app(stage.hub, stage.ada, scopes=ALL)
    token = consented(app, stage.ada, f"openid {scope}")
    assert statuses(stage.hub, token, scope, "ada") == all_are(200, scope)
    count = len(upstream.received)
    assert statuses(stage.hub, token, scope, "acme") == all_are(403, scope)
    assert statuses(stage.hub, token, scope, "eve") == all_are(403, scope)
    assert len(upstream.received) == count


@pytest.mark.one_engine
@pytest.mark.parametrize("scope", CALLS)
def test_exchanged_token_passes_only_with_its_organization(stage: Stage, upstream: Upstream, scope: str) -> None:
    hub = stage.hub
    create_organization(hub, "club", stage.ada)
    app = create_exchange_app(hub, stage.acme, scopes=ALL)
    token = exchange_token(app, "ada@example.org", scope=scope)["access_token"]
    assert statuses(hub, token, scope, "acme") == all_are(200, scope)
    assert verified_claims(hub.url, upstream.last.token)["namespace"] == "acme"
    count = len(upstream.received)
    for namespace in ("ada", "club", "eve"):
        assert statuses(hub, token, scope, namespace) == all_are(403, scope)
    with api(hub, token) as client:
        # Without a namespace the user would pay.
        assert client.get("/v1/models").status_code == client.get("/api/jobs/hardware").status_code == 403
    other = exchange_token(app, "ada@example.org", scope="openid read-repos")["access_token"]
    assert statuses(hub, other, scope, "acme") == all_are(403, scope)
    assert len(upstream.received) == count


@pytest.mark.one_engine
def test_role_in_the_organization_limits_jobs(stage: Stage) -> None:
    hub = stage.hub
    people = {
        role: create_user(hub, name) for role, name in (("read", "rob"), ("contributor", "cat"), ("write", "wim"))
    }
    create_organization(hub, "club", stage.ada, rob="read", cat="contributor", wim="write")
    for role, user in people.items():
        token = create_token(hub, user)
        assert statuses(hub, token, "inference-api", "club") == all_are(200, "inference-api")
        expected = {name: 200 if role == "write" or name in READS_OF_JOBS else 403 for name in CALLS["jobs"]}
        assert statuses(hub, token, "jobs", "club") == expected


@pytest.mark.one_engine
def test_read_token_only_reads(stage: Stage) -> None:
    token = create_token(stage.hub, stage.ada, "read")
    expected = {name: 200 if name in READS_OF_JOBS else 403 for name in CALLS["jobs"]}
    assert statuses(stage.hub, token, "jobs", "ada") == expected
    assert statuses(stage.hub, token, "inference-api", "ada") == all_are(403, "inference-api")


@pytest.mark.one_engine
def test_strangers_and_visitors_are_rejected(stage: Stage, upstream: Upstream) -> None:
    hub, eve = stage.hub, create_token(stage.hub, stage.eve)
    for scope in CALLS:
        for namespace in ("ada", "acme"):
            assert statuses(hub, eve, scope, namespace) == all_are(403, scope)
            assert statuses(hub, None, scope, namespace) == all_are(401, scope)
        assert set(statuses(hub, eve, scope, "nobody").values()) == {404}
    with browser_of(hub, stage.ada) as browser:
        assert browser.get("/v1/models").status_code == 401, "a session cookie is not a credential here (O61)"
    assert upstream.received == []


@pytest.mark.one_engine
def test_permissions_are_checked_before_501(engine: Engine, tmp_path: Path) -> None:
    with run_hub(settings_for(engine.fresh_url(), tmp_path)) as hub:
        stage = set_stage(hub)
        app = create_app(hub, stage.ada, scopes=ALL)
        for scope in CALLS:
            token = consented(app, stage.ada, f"openid {scope}")
            assert statuses(hub, token, scope, "ada") == all_are(501, scope)
            assert statuses(hub, token, scope, "acme") == all_are(403, scope)
            other = next(name for name in CALLS if name != scope)
            assert statuses(hub, token, other, "ada") == all_are(403, other)
