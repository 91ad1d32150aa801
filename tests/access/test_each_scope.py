"""One token per scope over the wire: a call that the scope permits, and one that it does not (SEED.md 2.6).

Each call is sent to a personal namespace and to an organization's. A token reaches the organization only if the user
picked it when approving the app.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import httpx
import pytest
from tests.bed.apps import create_app, token_of, tokens_for
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_repo, send_commit
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.upstream import run_upstream

from hubgate.server.accounts.model import Organization, User
from hubgate.server.scopes import SCOPE_NAMES

ALL = tuple(sorted(SCOPE_NAMES))
_NUMBERS = count()


@dataclass(frozen=True)
class Namespace:
    """A namespace with a public repo, a private one and a private collection.

    `gated` is a gated repo of another user or organization, which the caller was granted access to.
    """

    name: str
    collection: str
    gated: str


@dataclass(frozen=True)
class Call:
    """A request, and the status with which it is refused: 404 hides a private resource."""

    send: Callable[[httpx.Client, Namespace], httpx.Response]
    refusal: int


SEE_REPO = Call(lambda client, at: client.get(f"/api/models/{at.name}/secret"), 404)
READ_GATED = Call(lambda client, at: client.get(f"/{at.gated}/resolve/main/weights"), 403)
COMMIT = Call(lambda client, at: send_commit(client, f"{at.name}/open", {"f": b"%d" % next(_NUMBERS)}), 403)
CREATE_REPO = Call(
    lambda client, at: client.post("/api/repos/create", json={"name": _new_name(), "organization": at.name}), 403
)
# Anyone may open a discussion of a public repo; pinning one needs a role in the namespace.
PIN = Call(lambda client, at: client.post(f"/api/models/{at.name}/open/discussions/1/pin", json={"pinned": True}), 403)
SEE_COLLECTION = Call(lambda client, at: client.get(f"/api/collections/{at.collection}"), 404)
CREATE_COLLECTION = Call(
    lambda client, at: client.post("/api/collections", json={"title": _new_name(), "namespace": at.name}), 403
)
COMPLETE = Call(lambda client, at: client.post("/v1/chat/completions", json={}, headers={"x-hf-bill-to": at.name}), 403)
RUN_JOB = Call(lambda client, at: client.post(f"/api/jobs/{at.name}", json={}), 403)
SEE_WEBHOOKS = Call(lambda client, at: client.get(_webhooks_of(at)), 403)

# By scope: a call that it permits, and one that it does not.
CALLS = {
    "read-repos": (SEE_REPO, COMMIT),
    "write-repos": (COMMIT, CREATE_REPO),
    "manage-repos": (CREATE_REPO, PIN),
    "contribute-repos": (CREATE_REPO, SEE_REPO),
    "gated-repos": (READ_GATED, SEE_REPO),
    "write-discussions": (PIN, COMMIT),
    "read-collections": (SEE_COLLECTION, CREATE_COLLECTION),
    "write-collections": (CREATE_COLLECTION, SEE_REPO),
    "inference-api": (COMPLETE, RUN_JOB),
    "jobs": (RUN_JOB, COMPLETE),
    "webhooks": (SEE_WEBHOOKS, CREATE_REPO),
}
# By scope: the claim of userinfo that it adds.
CLAIMS = {"profile": "preferred_username", "email": "email", "read-billing": "canPay"}


def _new_name() -> str:
    return f"new-{next(_NUMBERS)}"


def _webhooks_of(at: Namespace) -> str:
    return "/api/settings/webhooks" if at.name == "ada" else f"/api/organizations/{at.name}/settings/webhooks"


@dataclass(frozen=True)
class Stage:
    hub: RunningHub
    ada: User
    acme: Organization
    own: Namespace
    shared: Namespace

    def token(self, scope: str, *organizations: Organization) -> str:
        """A token with `openid` and this scope, of a new app: an earlier consent adds nothing to it."""
        return token_of(create_app(self.hub, name=_new_name(), scopes=ALL), self.ada, scope, *organizations)


@pytest.fixture
def stage(engine: Engine, tmp_path: Path) -> Iterator[Stage]:
    with run_upstream() as upstream:
        settings = settings_for(
            engine.fresh_url(), tmp_path, inference_upstream=upstream.url, jobs_upstream=upstream.url
        )
        with run_hub(settings) as hub:
            ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
            acme = create_organization(hub, "acme", ada)
            create_organization(hub, "club", bob)
            with api(hub, create_token(hub, ada)) as client, api(hub, create_token(hub, bob)) as other:
                own, shared = (
                    _fill(client, other, name, gated) for name, gated in (("ada", "bob/gated"), ("acme", "club/gated"))
                )
            yield Stage(hub, ada, acme, own, shared)


def _fill(client: httpx.Client, other: httpx.Client, name: str, gated: str) -> Namespace:
    for repo, private in (("open", False), ("secret", True)):
        create_repo(client, f"{name}/{repo}", private=private)
    assert client.post(f"/api/models/{name}/open/discussions", json={"title": "A question"}).status_code == 200
    body = {"title": "Private", "namespace": name, "private": True}
    collection = client.post("/api/collections", json=body).json()["slug"]
    create_repo(other, gated, files=[{"path": "weights", "content": "x"}])
    assert other.put(f"/api/models/{gated}/settings", json={"gated": "manual"}).status_code == 200
    granted = other.post(f"/api/models/{gated}/user-access-request/grant", json={"user": "ada"})
    assert granted.status_code == 200
    return Namespace(name, collection, gated)


def is_allowed(stage: Stage, token: str, call: Call, at: Namespace) -> bool:
    """Send the call. A refusal has the documented status and, unless it hides the resource, names the reason."""
    with api(stage.hub, token) as client:
        answer = call.send(client, at)
    if answer.is_success:
        return True
    assert answer.status_code == call.refusal, answer.text
    assert answer.headers["x-error-message"]
    return False


def test_tables_cover_every_scope() -> None:
    assert {*CALLS, *CLAIMS, "openid"} == SCOPE_NAMES


@pytest.mark.one_engine
def test_each_scope_permits_its_own_call_only(stage: Stage) -> None:
    acme, own, shared = stage.acme, stage.own, stage.shared
    nothing = stage.token("openid", acme)
    for scope, (allowed, refused) in CALLS.items():
        token = stage.token(scope, acme)
        for at in (own, shared):
            assert is_allowed(stage, token, allowed, at), (scope, at)
            assert not is_allowed(stage, nothing, allowed, at), (scope, at)
            assert not is_allowed(stage, token, refused, at), (scope, at)


@pytest.mark.one_engine
def test_organization_that_the_user_did_not_pick_is_out_of_reach(stage: Stage) -> None:
    for scope, (allowed, _) in CALLS.items():
        token = stage.token(scope)
        assert is_allowed(stage, token, allowed, stage.own), scope
        # Access to a gated repo was granted to the user, not to a member of the organization.
        expected = scope == "gated-repos"
        assert is_allowed(stage, token, allowed, stage.shared) == expected, scope


@pytest.mark.one_engine
def test_refusal_names_the_missing_scope(stage: Stage) -> None:
    with api(stage.hub, stage.token("openid", stage.acme)) as client:
        for at in (stage.own, stage.shared):
            for scope, (allowed, _) in CALLS.items():
                answer = allowed.send(client, at)
                if allowed.refusal == 403:
                    challenge, message = answer.headers["www-authenticate"], answer.headers["x-error-message"]
                    assert 'error="insufficient_scope"' in challenge, scope
                    assert scope in message, scope
                    # Of alternatives, one to request.
                    requested = challenge.partition('scope="')[2].partition('"')[0]
                    assert (requested in message, " " in requested) == (True, False), scope


@pytest.mark.one_engine
def test_each_claim_needs_its_scope(stage: Stage) -> None:
    for scope, claim in CLAIMS.items():
        token = stage.token(scope)
        with api(stage.hub, token) as client:
            assert claim in client.get("/oauth/userinfo").json(), scope
        assert not is_allowed(stage, token, SEE_REPO, stage.own), scope
        for other in CLAIMS.keys() - {scope}:
            with api(stage.hub, stage.token(other)) as client:
                assert claim not in client.get("/oauth/userinfo").json(), (scope, other)


@pytest.mark.one_engine
@pytest.mark.parametrize("scope", ["read-billing", "profile"])
def test_billing_of_an_organization_needs_scope_and_organization(stage: Stage, scope: str) -> None:
    for picked in ((), (stage.acme,)):
        with api(stage.hub, stage.token(scope, *picked)) as client:
            (acme,) = client.get("/oauth/userinfo").json()["orgs"]
        assert ("canPay" in acme) == (scope == "read-billing" and picked != ()), picked


@pytest.mark.one_engine
def test_openid_adds_an_id_token_only(stage: Stage) -> None:
    app = create_app(stage.hub, scopes=ALL)
    answer = tokens_for(app, stage.ada, scope="openid")
    assert answer["id_token"]
    assert "id_token" not in tokens_for(app, stage.ada, scope="profile")
    with api(stage.hub, answer["access_token"]) as client:
        claims = client.get("/oauth/userinfo").json()
    assert (claims["sub"], claims.keys() & CLAIMS.values()) == (stage.ada.id, set())
    for allowed, refused in CALLS.values():
        for at in (stage.own, stage.shared):
            for call in (allowed, refused):
                assert not is_allowed(stage, answer["access_token"], call, at)
