"""The operator revokes a scope while users approve it and apps exchange tokens: nobody has the scope afterwards."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
import pytest
from tests.bed.apps import Client, create_app, pkce_pair
from tests.bed.cimd_documents import store_document
from tests.bed.concurrency import run_concurrently
from tests.bed.engines import Engine, settings_for
from tests.bed.exchange import create_exchange_app, send_exchange
from tests.bed.people import Page, api, browser_of, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.audit.model import SYSTEM
from hubgate.server.oauth.apps import privileges
from hubgate.server.oauth.cimd import granted_scopes
from hubgate.server.scopes import Risk, Scope

METRICS = "read-metrics"
ROUNDS, REQUESTS = 10, 6


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    """With one scope defined by the operator."""
    extra = (Scope(METRICS, Risk.CHANGES, "See how the hub is used"),)
    with run_hub(replace(settings_for(engine.fresh_url(), tmp_path), extra_scopes=extra)) as hub:
        yield hub


def revocation(hub: RunningHub, client: Client) -> Callable[[], httpx.Response]:
    """Grant the scope to the app; the returned function revokes it."""
    is_document = bool(client.app.document_host)

    def revoke() -> httpx.Response:
        if is_document:
            hub.call(lambda opened: granted_scopes.revoke(opened.oauth, client.id, METRICS))
        else:
            hub.call(lambda opened: privileges.revoke_scope(opened.oauth, client.id, METRICS, SYSTEM))
        return httpx.Response(204)

    if is_document:
        hub.call(lambda opened: granted_scopes.grant(opened.oauth, client.id, METRICS))
    else:
        hub.call(lambda opened: privileges.grant_scope(opened.oauth, client.id, METRICS, SYSTEM))
    return revoke


@pytest.mark.parametrize("kind", ["registered", "document"])
def test_scope_approved_while_it_is_revoked_is_not_granted(hub: RunningHub, kind: str) -> None:
    olga, users = create_user(hub, "olga"), [create_user(hub, f"user{number}") for number in range(REQUESTS)]
    verifier, challenge = pkce_pair()
    asked = {"scope": f"openid {METRICS}", "code_challenge": challenge, "code_challenge_method": "S256"}

    def allow(browser: httpx.Client, client: Client) -> Callable[[], httpx.Response]:
        address = client.address(**asked)
        form = {**Page(browser.get(address)).hidden(), "decision": "approve", "scopes": [METRICS]}
        return partial(browser.post, address, data=form)

    with ExitStack() as open_until_done:
        browsers = [open_until_done.enter_context(browser_of(hub, user)) for user in users]
        for number in range(ROUNDS):
            url = f"https://notes{number}.example/oauth-cimd"
            client = store_document(hub, url) if kind == "document" else create_app(hub, olga)
            revoke = revocation(hub, client)
            _, *answers = run_concurrently([revoke, *(allow(browser, client) for browser in browsers)])
            for answer in answers:
                code = httpx.URL(answer.headers.get("location", "")).params.get("code")
                if code is not None:
                    assert client.redeem(code, code_verifier=verifier).json()["scope"] == "openid", f"round {number}"


@pytest.mark.parametrize("quota", [None, 1000])
def test_token_exchanged_while_a_scope_is_revoked_does_not_have_it(hub: RunningHub, quota: int | None) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as script:
        for number in range(ROUNDS):
            client = create_exchange_app(hub, acme, scopes=("openid",))
            settings = f"/api/organizations/acme/settings/applications/{client.id}"
            assert script.patch(settings, json={"dailyQuota": quota}).status_code == 200
            revoke, exchange = revocation(hub, client), partial(send_exchange, client, "ada@example.org")
            _, *answers = run_concurrently([revoke, *[exchange] * REQUESTS])
            for answer in answers:
                about = client.post("/oauth/introspect", {"token": answer.json()["access_token"]}).json()
                assert (about["active"], about["scope"]) == (True, "openid"), f"round {number}"
