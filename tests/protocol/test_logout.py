"""An app signs its user out of the hub (OpenID Connect RP-Initiated Logout)."""

import httpx
import pytest
from tests.bed.apps import Client, create_app, redirect_parameters, tokens_for
from tests.bed.cimd_documents import store_document
from tests.bed.people import Page, api, browser_of, create_token, create_user, submit
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User

pytestmark = pytest.mark.one_engine

AFTER = "https://app.example/signed-out"
PATH = "/oauth/logout"


def app_with_logout(hub: RunningHub, **given: object) -> Client:
    return create_app(hub, create_user(hub, "olga"), post_logout_redirect_uris=(AFTER,), **given)


def sign_out(browser: httpx.Client, **parameters: str) -> httpx.Response:
    """Open the page that asks, and confirm."""
    page = browser.get(PATH, params=parameters)
    assert (page.status_code, "Sign out of this hub?" in page.text) == (200, True), page.text
    action = f"{PATH}?{httpx.QueryParams(parameters)}"
    return browser.post(action, data=Page(page).hidden())


def is_signed_in(browser: httpx.Client) -> bool:
    return browser.get("/settings/profile").status_code == 200


def test_sign_in_after_sign_out_asks_again(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), app_with_logout(hub)
    tokens = tokens_for(client, ada)
    with browser_of(hub, ada) as browser:
        assert "code" in redirect_parameters(browser.get(client.address(prompt="none")))
        hub.clock.advance(30 * 24 * 60 * 60 - 60)
        asked = {"id_token_hint": tokens["id_token"], "post_logout_redirect_uri": AFTER, "state": "s t&te"}
        page = browser.get(PATH, params=asked)
        assert ("Notebook" in page.text, "app.example" in page.text, "@ada" in page.text) == (True, True, True)
        assert is_signed_in(browser), "the page only asks"
        done = sign_out(browser, **asked)
        assert (done.status_code, done.headers["location"]) == (303, f"{AFTER}?state=s%20t%26te")
        assert not is_signed_in(browser)
        assert redirect_parameters(browser.get(client.address(prompt="none")))["error"] == "login_required"
        assert browser.get(client.address()).headers["location"].startswith("/login?")
        again = browser.get(PATH, params=asked)
        assert (again.status_code, again.headers["location"]) == (303, f"{AFTER}?state=s%20t%26te")
    tokens = tokens_for(client, ada)
    with browser_of(hub, ada) as browser:
        sign_out(browser)
    with api(hub, tokens["access_token"]) as app:
        assert app.get("/oauth/userinfo").status_code == 200, "apps stay signed in"


def test_client_id_names_the_app_as_well(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), app_with_logout(hub)
    document = store_document(hub, post_logout_redirect_uris=["https://notes.example/bye", "http://plain.example/"])
    hint = tokens_for(client, ada)["id_token"]
    for asked, location in (
        ({"client_id": client.id, "post_logout_redirect_uri": AFTER}, AFTER),
        ({"client_id": client.id, "id_token_hint": hint, "post_logout_redirect_uri": AFTER}, AFTER),
        ({"client_id": document.id, "post_logout_redirect_uri": "https://notes.example/bye"}, None),
        ({"client_id": client.id, "state": "s"}, "/"),
        ({"id_token_hint": hint, "logout_hint": "ada", "ui_locales": "de"}, "/"),
        ({"state": "s"}, "/"),
        ({}, "/"),
    ):
        with browser_of(hub, ada) as browser:
            expected = location or asked["post_logout_redirect_uri"]
            done = sign_out(browser, **asked)
            assert (done.status_code, done.headers["location"]) == (303, expected), asked
            if expected == "/":
                assert "You are signed out." in browser.get("/").text
            assert not is_signed_in(browser)


def test_owner_registers_where_users_return(hub: RunningHub) -> None:
    owner = create_user(hub, "mia")
    with api(hub, create_token(hub, owner)) as program:
        path, uris = "/api/settings/applications", [AFTER, "http://localhost/bye", AFTER]
        made = program.post(path, json={"name": "Notebook", "postLogoutRedirectUris": uris}).json()
        assert made["postLogoutRedirectUris"] == uris[:2]
        one = f"{path}/{made['clientId']}"
        for wrong in (["http://app.example/"], ["javascript:x"], [f"{AFTER}#x"], [f"{AFTER}/{n}" for n in range(51)]):
            assert program.patch(one, json={"postLogoutRedirectUris": wrong}).status_code == 422
        assert program.patch(one, json={"postLogoutRedirectUris": []}).json()["postLogoutRedirectUris"] == []
    with browser_of(hub, owner) as browser:
        page = f"/settings/applications/{made['clientId']}"
        form = {"name": "Notebook", "redirectMatch": "exact", "tokenLifetime": "3600", "scopes": "openid"}
        submit(browser, page, page, **form, postLogoutRedirectUris=f"{AFTER}\n", groupsClaim="on")
    with api(hub, create_token(hub, owner)) as program:
        said = program.get(one).json()
        assert (said["postLogoutRedirectUris"], said["groupsClaim"]) == ([AFTER], True)


def test_app_may_send_the_request_as_post(hub: RunningHub) -> None:
    """From another site the browser withholds our cookie, so a POST leads to the page."""
    ada, client = create_user(hub, "ada"), app_with_logout(hub)
    asked = {"client_id": client.id, "post_logout_redirect_uri": AFTER, "state": "s", "ui_locales": "de"}
    with browser_of(hub, ada) as browser:
        sent = browser.post(PATH, data=asked)
        assert sent.status_code == 303
        assert sent.headers["location"].startswith("/oauth/logout?client_id=")
        assert "Sign out of this hub?" in browser.get(sent.headers["location"]).text


def test_owner_sees_why_a_sign_out_was_stopped(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), app_with_logout(hub)
    owner: User = create_user(hub, "mia")
    theirs = create_app(hub, owner, post_logout_redirect_uris=(AFTER,))
    with browser_of(hub, ada) as browser, browser_of(hub, owner) as its_owner:
        hint = tokens_for(theirs, ada)["id_token"]
        page = browser.get(PATH, params={"id_token_hint": hint, "post_logout_redirect_uri": f"{AFTER}/"})
        assert page.status_code == 400
        assert "Sign-out stopped" in page.text
        explained = f"/oauth/explain/{page.headers['x-request-id']}"
        assert explained in page.text
        shown = its_owner.get(explained).text
        assert "<mark>" in shown
        assert "Edit the sign-out redirects" in shown
        assert client.id not in shown


def test_error_page_says_once_what_happened_and_what_to_check(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), app_with_logout(hub)
    with browser_of(hub, ada) as browser:
        page = browser.get(PATH, params={"id_token_hint": "x", "post_logout_redirect_uri": AFTER})
        said = page.text.partition("<main")[2]
        assert (page.status_code, said.count("Sign-out stopped")) == (400, 1), said
        assert "id_token_hint is not an ID token of this hub. Nobody was signed out." in said
        assert ("Check client_id" in said, '"/docs/sign-in#sign-out"' in said) == (False, True)
        unknown = browser.get(PATH, params={"client_id": "unknown"}).text
        assert "This hub does not know the app that sent you. Nobody was signed out." in unknown
        assert "Check client_id under" in unknown
        assert (
            "Notebook asked to send you to"
            in browser.get(
                PATH, params={"client_id": client.id, "post_logout_redirect_uri": "https://evil.example/"}
            ).text
        )


def test_cancelling_returns_to_the_app(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), app_with_logout(hub, homepage="https://app.example/start?a=b&c=d")
    plain = create_app(hub, None, post_logout_redirect_uris=(AFTER,))
    with browser_of(hub, ada) as browser:
        page = browser.get(PATH, params={"client_id": client.id}).text
        assert 'href="https://app.example/start?a=b&amp;c=d">Back to app.example</a>' in page
        assert ">Cancel</a>" not in page
        for asked in ({}, {"client_id": plain.id, "post_logout_redirect_uri": AFTER}):
            assert '<a class="button" href="/">Cancel</a>' in browser.get(PATH, params=asked).text


@pytest.mark.parametrize("name", ["id_token_hint", "state", "post_logout_redirect_uri"])
def test_request_by_post_that_does_not_fit_an_address_is_refused(hub: RunningHub, name: str) -> None:
    """The browser would be redirected to an address that the hub does not accept."""
    ada, client = create_user(hub, "ada"), app_with_logout(hub)
    asked = {"client_id": client.id, "post_logout_redirect_uri": AFTER, name: "x" * 17_000}
    with browser_of(hub, ada) as browser, browser_of(hub) as visitor:
        for sender in (browser, visitor):
            sent = sender.post(PATH, data=asked)
            assert (sent.status_code, "Sign-out stopped" in sent.text) == (400, True), sent.text
            assert f"{name} is too long. Nobody was signed out." in sent.text
        assert is_signed_in(browser)
