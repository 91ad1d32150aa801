"""Apps with a metadata document, where the operator allows them more: the device flow, extra scopes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.bed import devices
from tests.bed.apps import redirect_parameters, tokens_for
from tests.bed.cimd_documents import REDIRECT_URI, URL, store_document, store_document_text
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, browser_of, create_user
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.oauth.cimd import granted_scopes
from hubgate.server.resources import Hub
from hubgate.server.scopes import Risk, Scope

DOCUMENT = {
    "client_id": URL,
    "client_name": "Field Notes",
    "redirect_uris": [REDIRECT_URI],
    "token_endpoint_auth_method": "none",
}
EXTRA = (Scope("read-metrics", Risk.CHANGES, "See how the hub is used"),)


async def grant(opened: Hub) -> None:
    await granted_scopes.grant(opened.oauth, URL, "read-metrics")


async def revoke(opened: Hub) -> None:
    await granted_scopes.revoke(opened.oauth, URL, "read-metrics")


def test_operator_allows_device_sign_in_and_extra_scopes(engine: Engine, tmp_path: Path) -> None:
    settings = settings_for(engine.fresh_url(), tmp_path, cimd_device="on")
    with run_hub(replace(settings, extra_scopes=EXTRA)) as hub:
        ada, client = create_user(hub, "ada"), store_document(hub)
        started = devices.start(client, scope="openid profile")
        with browser_of(hub, ada) as browser:
            page = devices.enter(browser, started["user_code"])
            assert "Not registered on this hub. Identified only by this address." in page.text
            assert "notes.example" in page.text
            devices.decide(browser, page, "approve", scopes=["openid", "profile"])
        given = devices.poll(client, started["device_code"]).json()
        assert (given["scope"], "refresh_token" in given) == ("openid profile", True)
        pkce = {"code_challenge": "c" * 43, "code_challenge_method": "S256"}
        asked = client.address(scope="openid read-metrics", **pkce)
        with browser_of(hub, ada) as browser:
            assert redirect_parameters(browser.get(asked))["error"] == "invalid_scope"
        hub.call(grant)
        tokens = tokens_for(client, ada, scope="openid read-metrics")
        assert tokens["scope"] == "openid read-metrics"
        hub.call(revoke)
        with browser_of(hub, ada) as browser:
            assert redirect_parameters(browser.get(asked))["error"] == "invalid_scope"
        refresh = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
        assert client.post("/oauth/token", refresh).json()["scope"] == "openid", "consents lose it too"
        with api(hub, tokens["access_token"]) as program:
            assert program.get("/oauth/userinfo").status_code == 200


@pytest.mark.one_engine
def test_deeply_nested_member_is_not_an_error_of_the_hub(hub: RunningHub) -> None:
    """JSON that can just be parsed may be too deep to be written again."""
    client = store_document(hub)
    asked = client.address(code_challenge="c" * 43, code_challenge_method="S256")
    with hub.client() as visitor:
        for depth in range(900, 1000, 2):
            nested = json.dumps({**DOCUMENT, "token_endpoint_auth_methods_supported": 0})
            store_document_text(hub, URL, nested.replace(": 0}", f": {'[' * depth}{']' * depth}}}"))
            assert visitor.get(asked).status_code in (303, 400, 429), depth
