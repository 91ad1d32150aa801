"""O36, O37: an app cannot discover organizations, and a tampered form grants only what was requested."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.apps import Client, approve, create_app, pkce_pair, redirect_parameters
from tests.bed.cimd_documents import store_document
from tests.bed.engines import Engine, settings_for
from tests.bed.people import Page, api, browser_of, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.accounts.model import User
from hubgate.server.audit.model import SYSTEM
from hubgate.server.oauth.apps import privileges
from hubgate.server.resources import Hub
from hubgate.server.scopes import Risk, Scope

pytestmark = pytest.mark.one_engine

PKCE = {"code_challenge": pkce_pair()[1], "code_challenge_method": "S256"}


def read(page: httpx.Response, *ids: str) -> str:
    """The page without the parts that differ by design: the CSRF token and the repeated URL."""
    text = re.sub(r'name="csrf" value="[^"]*"', "", page.text)
    for each in ids:
        text = text.replace(each, "ID")
    return text


def test_o36_unknown_and_foreign_organizations_look_the_same(hub: RunningHub) -> None:
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    own, foreign, unknown = (
        create_organization(hub, "acme", ada).id,
        create_organization(hub, "beta", olga).id,
        "f" * 24,
    )
    client = create_app(hub)
    with browser_of(hub, ada) as browser:
        pages = [browser.get(client.address(orgIds=each)) for each in (foreign, unknown)]
        assert [page.status_code for page in pages] == [200, 200]
        assert read(pages[0], foreign) == read(pages[1], unknown)
        assert " checked" not in pages[0].text.partition("Organization access")[2]
        for each in (foreign, unknown, "junk", "../../x", "%00"):
            sent = approve(browser, client.address(orgIds=each, prompt="consent"), orgs=[each])
            token = client.redeem(redirect_parameters(sent)["code"]).json()["access_token"]
            with api(hub, token) as app:
                listed = app.get("/oauth/userinfo").json()["orgs"]
            assert [(org["sub"], "roleInOrg" in org) for org in listed] == [(own, False)], "nothing was granted"
        answers = [browser.get(client.address(orgIds=each)) for each in (foreign, unknown)]
        assert ["code" in redirect_parameters(answer) for answer in answers] == [True, True], "and nothing is missing"
        silent = [browser.get(client.address(orgIds=each, prompt="none")) for each in (foreign, unknown)]
        assert ["code" in redirect_parameters(answer) for answer in silent] == [True, True]


def test_o37_only_requested_scopes_and_own_organizations_are_granted(hub: RunningHub) -> None:
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    own, foreign = create_organization(hub, "acme", ada), create_organization(hub, "beta", olga)
    client = create_app(hub, scopes=("openid", "profile", "read-repos", "manage-repos"))
    with browser_of(hub, ada) as browser:
        sent = approve(
            browser,
            client.address(scope="openid read-repos"),
            scopes=["openid", "read-repos", "manage-repos", "webhooks", "nonsense", ""],
            orgs=[own.id, foreign.id, "0" * 24, "x"],
        )
        body = client.redeem(redirect_parameters(sent)["code"]).json()
        assert body["scope"] == "openid read-repos"
        with api(hub, body["access_token"]) as app:
            listed = app.get("/oauth/userinfo").json()["orgs"]
        assert [(org["sub"], "roleInOrg" in org) for org in listed] == [(own.id, True)]
        assert browser.get(client.address(scope="openid manage-repos")).status_code == 200, "not in the grant either"


def test_o37_form_cannot_widen_the_request(hub: RunningHub) -> None:
    client = create_app(hub, scopes=("openid", "read-repos", "manage-repos"))
    with browser_of(hub, create_user(hub, "ada")) as browser:
        sent = approve(browser, client.address(scope="openid"), scope="openid manage-repos", scopes=["manage-repos"])
        assert redirect_parameters(sent)["error"] == "invalid_request", "sent twice"
        sent = approve(browser, client.address(scope="openid"), redirect_uri="https://evil.example/")
        assert (sent.status_code, "location" in sent.headers) == (400, False)


def test_o37_required_scopes_cannot_be_unticked(hub: RunningHub) -> None:
    client = create_app(hub, scopes=("openid", "profile", "jobs"), required_scopes=("jobs",))
    with browser_of(hub, create_user(hub, "ada")) as browser:
        sent = approve(browser, client.address(), scopes=[])
    assert client.redeem(redirect_parameters(sent)["code"]).json()["scope"] == "jobs profile openid"


def allowed(hub: RunningHub, user: User) -> list[Any]:
    with api(hub, create_token(hub, user)) as program:
        apps: list[Any] = program.get("/api/settings/connected-apps").json()
    return apps


CHANGES = [
    {"requiredScopes": ["read-repos"]},
    {"scopes": ["openid", "profile", "read-repos", "manage-repos"]},
    {"scopes": ["openid", "profile", "read-repos", "manage-repos"], "requiredScopes": ["manage-repos"]},
    {"scopes": ["openid", "profile"]},
    {"name": "Your Bank"},
    {"redirectUris": ["https://app.example/callback", "https://elsewhere.example/"]},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: "+".join(change))
def test_o37_changed_app_is_shown_again_before_approval(hub: RunningHub, change: dict[str, Any]) -> None:
    """The user unticked read-repos; the app's owner changes the app before the form is submitted."""
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    client = create_app(hub, olga, scopes=("openid", "profile", "read-repos"))
    address = client.address(scope=None)
    with browser_of(hub, ada) as browser, api(hub, create_token(hub, olga)) as owner:
        form = {**Page(browser.get(address)).hidden(), "decision": "approve"}
        form["scopes"] = ["openid", "profile"]
        assert owner.patch(f"/api/settings/applications/{client.id}", json=change).status_code == 200
        again = browser.post(address, data=form)
        assert (again.status_code, "location" in again.headers) == (200, False)
        assert "wants to use your account" in again.text
        assert "This app may have changed since you opened this page. Check it again." in again.text
        ticked = re.findall(r'name="scopes" value="([^"]+)" autocomplete="off" checked', again.text)
        assert ticked == [], "neither what the user unticked nor what is new"
        assert allowed(hub, ada) == []
        form |= Page(again).hidden()
        assert "code" in redirect_parameters(browser.post(address, data={**form, "scopes": ["openid", "profile"]}))
        shown = browser.get(client.address(scope=None, prompt="consent"))
        assert (shown.status_code, "since you opened this page" in shown.text) == (200, False)
    (app,) = allowed(hub, ada)
    assert set(app["scopes"]) == {"openid", "profile", *change.get("requiredScopes", [])}


def test_o37_changed_metadata_document_is_shown_again_before_approval(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), store_document(hub)
    address = client.address(scope=None, **PKCE)
    with browser_of(hub, ada) as browser:
        form = {**Page(browser.get(address)).hidden(), "decision": "approve"}
        store_document(hub, client_name="Your Bank")
        again = browser.post(address, data=form)
        assert (again.status_code, "Your Bank" in again.text) == (200, True)
    assert allowed(hub, ada) == []


def test_o37_decision_is_valid_only_for_the_page_that_was_shown(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    uris = ("https://app.example/callback", "https://elsewhere.example/")
    client, other = create_app(hub, redirect_uris=uris), create_app(hub)

    def shown(browser: httpx.Client, asked: Client, **parameters: str) -> str:
        return Page(browser.get(asked.address(**parameters))).hidden()["shown"]

    with browser_of(hub, ada) as browser, browser_of(hub, bob) as theirs:
        form = {**Page(browser.get(client.address())).hidden(), "decision": "approve", "scopes": ["read-repos"]}
        own = form.pop("shown")
        assert isinstance(own, str)
        for given in (
            shown(theirs, client),
            shown(browser, other),
            shown(browser, client, scope="openid"),
            shown(browser, client, redirect_uri=uris[1]),
            own[:-4] + "AAA=",
            "x",
            "é",
            "",
        ):
            assert browser.post(client.address(), data={**form, "shown": given}).status_code == 200, given
        assert browser.post(client.address(), data=form).status_code == 200
        assert allowed(hub, ada) == []
        assert "code" in redirect_parameters(browser.post(client.address(), data={**form, "shown": own}))


def test_o37_scope_disabled_by_the_operator_is_not_granted(engine: Engine, tmp_path: Path) -> None:
    """The consent page cannot describe it."""
    plain = settings_for(engine.fresh_url(), tmp_path)
    scopes = ["openid", "read-metrics"]
    with run_hub(replace(plain, extra_scopes=(Scope("read-metrics", Risk.CHANGES, "See figures"),))) as hub:
        olga = create_user(hub, "olga")
        client = create_app(hub, olga, scopes=("openid",))

        async def grant(opened: Hub) -> None:
            await privileges.grant_scope(opened.oauth, client.id, "read-metrics", SYSTEM)

        hub.call(grant)
        with api(hub, create_token(hub, olga)) as owner:
            change = {"scopes": scopes, "requiredScopes": ["read-metrics"]}
            assert owner.patch(f"/api/settings/applications/{client.id}", json=change).status_code == 200
    with run_hub(plain) as hub:
        client = replace(client, hub=hub)
        with browser_of(hub, create_user(hub, "ada")) as browser:
            sent = approve(browser, client.address(scope=None), scopes=scopes)
            assert client.redeem(redirect_parameters(sent)["code"]).json()["scope"] == "openid"
            sent = browser.get(client.address(scope=" ".join(scopes)))
            assert client.redeem(redirect_parameters(sent)["code"]).json()["scope"] == "openid"
