"""O49: after a sign-out, the browser is sent only to a registered URI. O85: no other site signs users out."""

import httpx
import pytest
from tests.attacks.test_o48_hints import forgeries
from tests.bed.apps import Client, create_app, tokens_for
from tests.bed.people import Page, browser_of, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User

pytestmark = pytest.mark.one_engine

AFTER, LOOPBACK, PATH = "https://app.example/signed-out", "http://localhost/bye", "/oauth/logout"


@pytest.fixture
def ada(hub: RunningHub) -> User:
    return create_user(hub, "ada")


@pytest.fixture
def client(hub: RunningHub) -> Client:
    return create_app(hub, create_user(hub, "olga"), post_logout_redirect_uris=(AFTER, LOOPBACK))


def is_signed_in(browser: httpx.Client) -> bool:
    return browser.get("/settings/profile").status_code == 200


def assert_stopped(browser: httpx.Client, **asked: str) -> None:
    """Neither the page nor a confirmation leads anywhere, signed in or not."""
    page = browser.get(PATH, params=asked)
    assert (page.status_code, "location" in page.headers) == (400, False), asked
    csrf = Page(browser.get(PATH)).hidden()["csrf"] if is_signed_in(browser) else "x"
    sent = browser.post(f"{PATH}?{httpx.QueryParams(asked)}", data={"csrf": csrf})
    assert sent.headers.get("location", PATH).startswith(PATH), asked


def test_o49_unregistered_address_is_rejected(hub: RunningHub, ada: User, client: Client) -> None:
    other = create_app(hub, None, post_logout_redirect_uris=("https://other.example/",))
    hint = tokens_for(client, ada)["id_token"]
    with browser_of(hub, ada) as browser, hub.client() as visitor:
        for target in (
            f"{AFTER}/",
            f"{AFTER}?a=b",
            f"{AFTER}#x",
            "https://APP.example/signed-out",
            "https://app.example:444/signed-out",
            "https://app.example/callback",
            "https://app.example@evil.example/signed-out",
            "https://other.example/",
            "http://127.0.0.1/bye",
            "http://localhost/bye/more",
            "//evil.example/",
            "javascript:alert(1)",
        ):
            for named in ({"id_token_hint": hint}, {"client_id": client.id}):
                assert_stopped(browser, post_logout_redirect_uri=target, **named)
                assert_stopped(visitor, post_logout_redirect_uri=target, **named)
        for asked in (
            {"post_logout_redirect_uri": AFTER},
            {"post_logout_redirect_uri": AFTER, "client_id": "unknown"},
            {"post_logout_redirect_uri": AFTER, "client_id": other.id, "id_token_hint": hint},
            {"post_logout_redirect_uri": AFTER, "client_id": client.id, "state": "s" * 4097},
        ):
            assert_stopped(browser, **asked)
        for name, forged in forgeries(hub, client, hint).items():
            page = browser.get(PATH, params={"post_logout_redirect_uri": AFTER, "id_token_hint": forged})
            assert (page.status_code, "location" in page.headers) == (400, False), name
        twice = f"{PATH}?client_id={client.id}&post_logout_redirect_uri={AFTER}&post_logout_redirect_uri={AFTER}"
        assert browser.get(twice).status_code == 400
        assert is_signed_in(browser)
        any_port = {"client_id": client.id, "post_logout_redirect_uri": "http://localhost:4711/bye"}
        assert visitor.get(PATH, params=any_port).headers["location"] == "http://localhost:4711/bye"


def test_o85_no_other_site_signs_a_user_out(hub: RunningHub, ada: User, client: Client) -> None:
    hint = tokens_for(client, ada)["id_token"]
    asked = {"id_token_hint": hint, "post_logout_redirect_uri": AFTER}
    with browser_of(hub, ada) as browser, browser_of(hub, create_user(hub, "mallory")) as theirs:
        page = browser.get(PATH, params=asked)
        assert (page.status_code, page.headers["x-frame-options"]) == (200, "DENY")
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
        own, taken = Page(page).hidden()["csrf"], Page(theirs.get(PATH)).hidden()["csrf"]
        address = f"{PATH}?{httpx.QueryParams(asked)}"
        for form in ({}, {"csrf": ""}, {**asked, "confirm": "yes"}):
            sent = browser.post(address, data=form)
            assert (sent.status_code, sent.headers["location"].startswith(PATH)) == (303, True), "the page asks"
        for csrf in (taken, "x", f"{own[:-4]}AAA="):
            assert browser.post(address, data={"csrf": csrf}).status_code == 403
        for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}):
            assert browser.post(address, data={"csrf": own}, headers=headers).status_code == 403
        assert browser.get(f"{address}&csrf={own}").status_code == 200
        assert is_signed_in(browser)
        assert browser.post(address, data={"csrf": own}).headers["location"] == AFTER
        assert not is_signed_in(browser)
