"""O35: consent and connected apps take a form only from a page that was made for the same session."""

import httpx
import pytest
from tests.bed.apps import answer_of, approve, make_app, tokens_for
from tests.bed.people import Page, api, browser_of, make_user
from tests.bed.running import RunningHub

DECISION = {"decision": "approve", "scopes": ["openid", "profile", "email", "read-repos"]}


def test_o35_consent_without_our_field(hub: RunningHub) -> None:
    client = make_app(hub)
    with browser_of(hub, make_user(hub, "ada")) as browser:
        for form in ({}, DECISION, {**DECISION, "csrf": ""}, {"decision": "deny"}):
            response = browser.post(client.address(), data=form)
            assert (response.status_code, "location" in response.headers) == (403, False)
        for site in ("cross-site", "same-site"):
            response = browser.post(client.address(), data=DECISION, headers={"sec-fetch-site": site})
            assert (response.status_code, "location" in response.headers) == (403, False)
        assert browser.get(client.address()).status_code == 200, "nothing was allowed by that"


def test_o35_consent_with_anothers_field(hub: RunningHub) -> None:
    client, mallory = make_app(hub), make_user(hub, "mallory")
    with browser_of(hub, make_user(hub, "ada")) as browser, browser_of(hub, mallory) as theirs, hub.client() as visitor:
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
        assert "code" in answer_of(browser.post(client.address(), data=form))


@pytest.mark.parametrize("deed", ["", "/revoke"])
def test_o35_connected_apps(hub: RunningHub, deed: str) -> None:
    ada, client = make_user(hub, "ada"), make_app(hub)
    token = tokens_for(client, ada)["access_token"]
    address = f"/settings/connected/{client.id}"
    with browser_of(hub, ada) as browser, browser_of(hub, make_user(hub, "mallory")) as theirs:
        taken = Page(theirs.get("/settings/profile")).hidden()["csrf"]
        for form in ({}, {"scopes": "openid"}, {"csrf": ""}, {"csrf": taken}):
            assert browser.post(address + deed, data=form).status_code == 403
    with api(hub, token) as app:
        assert app.get("/oauth/userinfo").json()["email"] == "ada@example.org"


def test_o35_a_stolen_decision_does_not_outlive_the_session(hub: RunningHub) -> None:
    client = make_app(hub)
    with browser_of(hub, make_user(hub, "ada")) as browser:
        form = {**Page(browser.get(client.address())).hidden(), **DECISION}
        cookie = browser.cookies["token"]
        out = Page(browser.get("/")).hidden("/logout")
        browser.post("/logout", data=out)
    response = httpx.post(hub.url + client.address(), data=form, cookies={"token": cookie})
    assert response.headers["location"].startswith("/login?")


def test_o35_an_approval_is_good_for_its_own_request(hub: RunningHub) -> None:
    """What was allowed to one app is not allowed to another."""
    client, other = make_app(hub), make_app(hub, name="Other")
    with browser_of(hub, make_user(hub, "ada")) as browser:
        assert "code" in answer_of(approve(browser, client.address()))
        assert browser.get(other.address()).status_code == 200
