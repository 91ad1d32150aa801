"""O35: consent, device, connected-app and app-settings forms are accepted only from a page of the same session."""

from typing import Any

import httpx
import pytest
from tests.bed import devices
from tests.bed.apps import Client, approve, create_app, redirect_parameters, tokens_for
from tests.bed.people import Page, api, browser_of, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub
from tests.protocol.test_apps_api import authenticates

pytestmark = pytest.mark.one_engine

DECISION = {"decision": "approve", "scopes": ["openid", "profile", "email", "read-repos"]}


def test_o35_consent_without_a_csrf_token_is_rejected(hub: RunningHub) -> None:
    client = create_app(hub)
    with browser_of(hub, create_user(hub, "ada")) as browser:
        asked = browser.post(client.address())
        assert (asked.status_code, "location" in asked.headers) == (200, False), "like GET: the consent page"
        for form in (DECISION, {**DECISION, "csrf": ""}, {"decision": "deny"}):
            response = browser.post(client.address(), data=form)
            assert (response.status_code, "location" in response.headers) == (403, False)
        for site in ("cross-site", "same-site"):
            response = browser.post(client.address(), data=DECISION, headers={"sec-fetch-site": site})
            assert (response.status_code, "location" in response.headers) == (403, False)
        assert browser.get(client.address()).status_code == 200, "nothing was allowed by that"


def test_o35_consent_with_another_sessions_csrf_token_is_rejected(hub: RunningHub) -> None:
    client, mallory = create_app(hub), create_user(hub, "mallory")
    with (
        browser_of(hub, create_user(hub, "ada")) as browser,
        browser_of(hub, mallory) as theirs,
        hub.client() as visitor,
    ):
        taken = [
            Page(who.get(page)).hidden()["csrf"] for who, page in ((theirs, client.address()), (visitor, "/login"))
        ]
        form = {**Page(browser.get(client.address())).hidden(), **DECISION}
        for csrf in (*taken, f"{form['csrf'][:-4]}AAA=", "x", "é"):
            response = browser.post(client.address(), data={**form, "csrf": csrf})
            assert (response.status_code, "location" in response.headers) == (403, False)
        for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}, {"origin": "null"}):
            response = browser.post(client.address(), data=form, headers=headers)
            assert response.status_code == 403
        assert browser.get(client.address()).status_code == 200
        assert "code" in redirect_parameters(browser.post(client.address(), data=form))


def test_o35_forged_device_forms_are_rejected(hub: RunningHub) -> None:
    """Otherwise another site could have the user approve a device of the attacker's."""
    client = create_app(hub)
    started = devices.start(client)
    typed = {"user_code": started["user_code"]}
    with (
        browser_of(hub, create_user(hub, "ada")) as browser,
        browser_of(hub, create_user(hub, "mallory")) as theirs,
        hub.client() as visitor,
    ):
        taken = [Page(theirs.get("/oauth/device")).hidden()["csrf"], Page(visitor.get("/login")).hidden()["csrf"]]
        form = Page(devices.enter(browser, started["user_code"])).hidden()
        own = form["csrf"]
        for decided in ({}, DECISION, {"decision": "deny"}):
            for csrf in (None, "", "x", "é", f"{own[:-4]}AAA=", *taken):
                forged = {**form, **typed, **decided, "csrf": csrf}
                sent = {name: value for name, value in forged.items() if value is not None}
                assert browser.post(devices.VERIFY, data=sent).status_code == 403, (decided, csrf)
            for headers in (
                {"sec-fetch-site": "cross-site"},
                {"sec-fetch-site": "same-site"},
                {"origin": "https://evil.example"},
                {"origin": "null"},
            ):
                answer = browser.post(devices.VERIFY, data={**form, **decided}, headers=headers)
                assert answer.status_code == 403, (decided, headers)
        address = f"{devices.VERIFY}?user_code={started['user_code']}&decision=approve&csrf={own}"
        assert browser.get(address).status_code == 405, "no link decides anything"
        without_session = visitor.post(devices.VERIFY, data={**form, **DECISION})
        assert without_session.status_code in (303, 403)
        assert devices.poll(client, started["device_code"]).json()["error"] == "authorization_pending"
        assert browser.post(devices.VERIFY, data={**form, **DECISION}).status_code == 303, "it was the field alone"
    assert devices.poll(client, started["device_code"]).status_code == 200


@pytest.mark.parametrize("deed", ["", "/revoke"])
def test_o35_forged_connected_apps_forms_are_rejected(hub: RunningHub, deed: str) -> None:
    ada, client = create_user(hub, "ada"), create_app(hub)
    token = tokens_for(client, ada)["access_token"]
    address = f"/settings/connected/{client.id}"
    with browser_of(hub, ada) as browser, browser_of(hub, create_user(hub, "mallory")) as theirs:
        taken = Page(theirs.get("/settings/profile")).hidden()["csrf"]
        for form in ({}, {"scopes": "openid"}, {"csrf": ""}, {"csrf": taken}):
            assert browser.post(address + deed, data=form).status_code == 403
    with api(hub, token) as app:
        assert app.get("/oauth/userinfo").json()["email"] == "ada@example.org"


SETTINGS, ACME = "/settings/applications", "/organizations/acme/settings/applications"
EVIL = {
    "name": "Evil",
    "redirectUris": "https://evil.example/",
    "redirectMatch": "origin",
    "scopes": "openid",
    "tokenLifetime": "86400",
}


def forms_of(root: str, client: Client) -> list[tuple[str, str, dict[str, str]]]:
    """All forms of the app pages: page, action and fields. Submitted in this order, all succeed."""
    one, last_four = f"{root}/{client.id}", (client.secret or "")[-4:]
    organizations = [
        (f"{one}/ask/token-exchange", f"{one}/ask/token-exchange", {"reason": "x"}),
        (f"{one}/exchange", f"{one}/exchange/dry-run", {"subjectToken": "ada@example.org"}),
        (f"{one}/exchange", f"{one}/exchange", {"tokenDuration": "86400", "paused": "on"}),
    ]
    return [
        (f"{root}/new", root, {**EVIL, "secret": "yes"}),
        (f"{one}/ask/scope", f"{one}/ask/scope", {"wanted": "read-metrics", "reason": "x"}),
        *(organizations if root == ACME else []),
        (one, f"{one}/secret/end", {"lastFour": last_four}),
        (one, one, EVIL),
        (f"{one}/secret", f"{one}/secret", {"overlapSeconds": "0"}),
        (f"{one}/secret/delete", f"{one}/secret/delete", {}),
        (f"{one}/delete", f"{one}/delete", {"name": "Evil"}),
    ]


@pytest.mark.parametrize("root", [SETTINGS, ACME])
def test_o35_forged_app_settings_forms_are_rejected(hub: RunningHub, root: str) -> None:
    """Every form: without a CSRF token, with another session's, and with the user's own sent from another site."""
    ada, boss = create_user(hub, "ada"), create_user(hub, "boss", operator=True)
    acme = create_organization(hub, "acme", ada, plan="enterprise")
    named: dict[str, Any] = {"name": "Evil"}
    client = create_app(hub, organization=acme, **named) if root == ACME else create_app(hub, ada, **named)
    with (
        browser_of(hub, ada) as browser,
        browser_of(hub, create_user(hub, "mallory")) as theirs,
        hub.client() as visitor,
        api(hub, create_token(hub, ada)) as program,
    ):
        one = f"/api{root}/{client.id}"
        secret = program.post(f"{one}/secret", json={"overlapSeconds": 3600}).json()["clientSecret"]
        before = program.get(f"/api{root}").json()
        taken = [Page(theirs.get("/settings/profile")).hidden()["csrf"], Page(visitor.get("/login")).hidden()["csrf"]]
        ready = []
        for page, action, fields in forms_of(root, client):
            form = {**Page(browser.get(page)).hidden(action), **fields}
            own = form.pop("csrf")
            for forged in (form, *({**form, "csrf": csrf} for csrf in ("", "x", f"{own[:-4]}AAA=", *taken))):
                assert browser.post(action, data=forged).status_code == 403, action
            for headers in ({"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"origin": "null"}):
                assert browser.post(action, data={**form, "csrf": own}, headers=headers).status_code == 403, action
            ready.append((action, {**form, "csrf": own}))
        assert program.get(f"/api{root}").json() == before
        assert authenticates(hub, client.id, secret)
        assert authenticates(hub, client.id, client.secret)
        with browser_of(hub, boss) as operator:
            assert "Requests from app owners for" in operator.get("/operator/requests").text, "nothing waits"
        for action, form in ready:
            assert browser.post(action, data=form).status_code in (200, 303), f"{action}: it was the field alone"
        assert [app["clientId"] == client.id for app in program.get(f"/api{root}").json()] == [False]


def test_o35_stolen_decision_form_ends_with_the_session(hub: RunningHub) -> None:
    client = create_app(hub)
    with browser_of(hub, create_user(hub, "ada")) as browser:
        form = {**Page(browser.get(client.address())).hidden(), **DECISION}
        cookie = browser.cookies["token"]
        out = Page(browser.get("/")).hidden("/logout")
        browser.post("/logout", data=out)
    response = httpx.post(hub.url + client.address(), data=form, cookies={"token": cookie})
    assert response.headers["location"].startswith("/login?")


def test_o35_approval_form_is_valid_for_its_own_request_only(hub: RunningHub) -> None:
    """An approval for one app cannot be submitted for another."""
    client, other = create_app(hub), create_app(hub, name="Other")
    with browser_of(hub, create_user(hub, "ada")) as browser:
        assert "code" in redirect_parameters(approve(browser, client.address()))
        assert browser.get(other.address()).status_code == 200
