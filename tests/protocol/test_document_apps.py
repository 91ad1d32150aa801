"""Apps with a metadata document, where the operator allows them more: the device flow, extra scopes."""

from dataclasses import replace
from pathlib import Path

from tests.bed import devices
from tests.bed.apps import redirect_parameters, tokens_for
from tests.bed.cimd_documents import URL, store_document
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, browser_of, create_user
from tests.bed.running_hub import run_hub

from hubgate.server.oauth.cimd import granted_scopes
from hubgate.server.resources import Hub
from hubgate.server.scopes import Risk, Scope

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
