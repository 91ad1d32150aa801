"""From an app to the sign-in page and back: who must sign in again, who need not, and that there is no redirect
loop.
"""

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tests.bed.apps import Client, approve, create_app, redirect_parameters, tokens_for
from tests.bed.cimd_documents import store_document
from tests.bed.people import PASSWORD, Page, browser_of, create_user
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine


def sign_in_page(browser: httpx.Client, sent: httpx.Response) -> httpx.Response:
    assert sent.status_code == 303, sent.text
    assert sent.headers["location"].startswith("/login?"), sent.headers["location"]
    shown = browser.get(sent.headers["location"])
    assert shown.status_code == 200, "a signed-in user would be redirected in circles"
    return shown


def sign_in(browser: httpx.Client, sent: httpx.Response, username: str = "ada") -> httpx.Response:
    """The answer of the authorization URL after a sign-in."""
    form = Page(sign_in_page(browser, sent)).hidden()
    done = browser.post("/login", data={**form, "username": username, "password": PASSWORD})
    assert done.status_code == 303, done.text
    return browser.get(done.headers["location"])


def return_url(sent: httpx.Response) -> str:
    """The URL that the user continues to after signing in."""
    return parse_qs(urlsplit(sent.headers["location"]).query)["next"][0]


def proof_in(address: str) -> str:
    return parse_qs(urlsplit(address).query)["_mark"][0]


def auth_time(client: Client, response: httpx.Response) -> int:
    token = client.redeem(redirect_parameters(response)["code"]).json()["id_token"]
    time: int = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))["auth_time"]
    return time


@pytest.fixture
def client(hub: RunningHub) -> Client:
    create_user(hub, "ada")
    return create_app(hub, create_user(hub, "olga"))


@contextmanager
def signed_in(client: Client) -> Iterator[httpx.Client]:
    """By the form, so that signing in again replaces the session."""
    with client.hub.client() as browser:
        form = Page(browser.get("/login")).hidden()
        browser.post("/login", data={**form, "username": "ada", "password": PASSWORD})
        yield browser


def test_visitor_returns_to_the_app_after_signing_in(hub: RunningHub, client: Client) -> None:
    with hub.client() as visitor:
        consent = sign_in(visitor, visitor.get(client.address()))
    assert "wants to use your account" in consent.text


@pytest.mark.parametrize(
    "asked", [{"prompt": "login"}, {"max_age": "0"}, {"prompt": "login consent"}, {"max_age": "1"}]
)
def test_one_sign_in_is_enough_for_the_app(hub: RunningHub, client: Client, asked: dict[str, str]) -> None:
    with hub.client() as visitor:
        consent = sign_in(visitor, visitor.get(client.address(**asked)))
        hub.clock.advance(seconds=30)
        action = unescape(consent.text.partition('method="post" action="')[2].partition('"')[0])
        allowed = visitor.post(action, data={**Page(consent).hidden(), "decision": "approve"})
        assert "code" in redirect_parameters(allowed), "however long the user thought about it"


@pytest.mark.parametrize("asked", [{"prompt": "login"}, {"max_age": "0"}, {"max_age": "60"}])
def test_signed_in_user_does_not_sign_in_again(hub: RunningHub, client: Client, asked: dict[str, str]) -> None:
    with signed_in(client) as browser:
        approve(browser, client.address())
        old = browser.cookies["token"]
        hub.clock.advance(seconds=61)
        answered = sign_in(browser, browser.get(client.address(**asked)))
        assert auth_time(client, answered) == hub.clock() // 1_000_000
        assert browser.cookies["token"] != old
        page = sign_in_page(browser, browser.get(client.address(prompt="login")))
        assert "Signed in as <bdi>@ada</bdi>." in page.text
        assert 'name="username" type="text" value="ada"' in page.text


def test_max_age_accepts_a_fresh_session(hub: RunningHub, client: Client) -> None:
    with signed_in(client) as browser:
        approve(browser, client.address())
        hub.clock.advance(seconds=60)
        assert "code" in redirect_parameters(browser.get(client.address(max_age="60")))


def test_app_cannot_forge_the_proof_of_a_new_sign_in(hub: RunningHub, client: Client) -> None:
    with signed_in(client) as browser:
        approve(browser, client.address())
        sent = browser.get(client.address(prompt="login"))
        back = return_url(sent)
        mark = proof_in(back)
        _, made_at, session, mac = mark.split(".")
        for forged in ("", "x", f"left.{made_at}..{mac}", f"kept.{made_at}.{session}.{mac}", f"left.0.{session}.{mac}"):
            sign_in_page(browser, browser.get(client.address(prompt="login", _mark=forged)))
        sign_in_page(browser, browser.get(back))
        assert "code" in redirect_parameters(sign_in(browser, browser.get(back)))


@pytest.mark.parametrize(
    "asked", [{"prompt": "login"}, {"max_age": "0"}, {"max_age": "60"}, {"prompt": "select_account"}]
)
def test_proof_from_another_session_is_not_a_sign_in(hub: RunningHub, client: Client, asked: dict[str, str]) -> None:
    """Otherwise a person at a signed-in browser could fetch a proof elsewhere, signed out or as another user."""
    address = client.address(**asked)
    mallory = create_user(hub, "mallory")
    with signed_in(client) as browser, hub.client() as visitor, browser_of(hub, mallory) as theirs:
        approve(browser, client.address())
        hub.clock.advance(seconds=61)
        for back in (return_url(visitor.get(address)), return_url(theirs.get(address))):
            sign_in_page(browser, browser.get(back))
        assert "code" in redirect_parameters(sign_in(browser, browser.get(back)))


def test_proof_of_sign_in_is_valid_for_its_own_request(hub: RunningHub, client: Client) -> None:
    with signed_in(client) as browser:
        approve(browser, client.address())
        sent = browser.get(client.address(prompt="login", state="one"))
        assert "code" in redirect_parameters(sign_in(browser, sent))
        used = proof_in(return_url(sent))
        for other in ({"state": "two"}, {"state": "one", "scope": "openid"}, {"state": "one", "max_age": "0"}):
            address = client.address(**{"prompt": "login", **other}, _mark=used)
            sign_in_page(browser, browser.get(address))
        again = client.address(prompt="login", state="one", ui_locales="de", _mark=used)
        assert "code" in redirect_parameters(browser.get(again)), "what means nothing here changes nothing"
        page = sign_in_page(browser, browser.get(client.address(prompt="select_account", state="one"))).text
        stay = unescape(page.partition('<a href="/oauth/authorize')[2].partition('"')[0])
        assert "code" in redirect_parameters(browser.get(f"/oauth/authorize{stay}"))
        address = client.address(prompt="select_account", state="two", _mark=proof_in(stay))
        sign_in_page(browser, browser.get(address))


def test_proof_of_sign_in_in_the_browser_history_expires_after_an_hour(hub: RunningHub, client: Client) -> None:
    with signed_in(client) as browser:
        approve(browser, client.address())
        sent = browser.get(client.address(prompt="login"))
        back = return_url(sent)
        sign_in(browser, sent)
        assert "code" in redirect_parameters(browser.get(back))
        hub.clock.advance(seconds=3601)
        sign_in_page(browser, browser.get(back))


def test_select_account_offers_the_signed_in_account(hub: RunningHub, client: Client) -> None:
    create_user(hub, "bob")
    with signed_in(client) as browser:
        approve(browser, client.address())
        page = sign_in_page(browser, browser.get(client.address(prompt="select_account"))).text
        assert 'name="username" type="text" value=""' in page
        stay = unescape(page.partition('<a href="/oauth/authorize')[2].partition('"')[0])
        assert "code" in redirect_parameters(browser.get(f"/oauth/authorize{stay}")), "with the account they have"
        as_bob = sign_in(browser, browser.get(client.address(prompt="select_account")), "bob")
        assert "Signed in as <bdi>@bob</bdi>." in as_bob.text
        page = sign_in_page(browser, browser.get(client.address(prompt="login select_account"))).text
        assert "Continue as" not in page, "the app wants a new sign-in of any user"


def test_user_can_continue_with_another_account(hub: RunningHub, client: Client) -> None:
    create_user(hub, "bob")
    with signed_in(client) as browser:
        consent = browser.get(client.address(prompt="consent")).text
        switch = unescape(consent.partition('<a href="/oauth/authorize')[2].partition('"')[0])
        assert parse_qs(switch[1:])["prompt"] == ["consent select_account"]
        as_bob = sign_in(browser, browser.get(f"/oauth/authorize{switch}"), "bob")
    assert "Signed in as <bdi>@bob</bdi>." in as_bob.text


def test_id_token_hint_names_the_user(hub: RunningHub, client: Client) -> None:
    """OpenID Connect Core, section 3.1.2.1: no other user's code is issued."""
    bob = create_user(hub, "bob")
    hint = tokens_for(client, bob)["id_token"]
    hub.clock.advance(seconds=30 * 24 * 3600 - 60)
    with browser_of(hub, bob) as browser:
        assert "code" in redirect_parameters(browser.get(client.address(id_token_hint=hint))), "expired or not"
    with signed_in(client) as browser:
        silent = redirect_parameters(browser.get(client.address(id_token_hint=hint, prompt="none")))
        assert silent["error"] == "login_required"
        stubborn = sign_in(browser, browser.get(client.address(id_token_hint=hint)), "ada")
        assert redirect_parameters(stubborn)["error"] == "login_required", "not asked for ever"
        assert "code" in redirect_parameters(sign_in(browser, browser.get(client.address(id_token_hint=hint)), "bob"))


def test_sign_in_page_names_the_app(hub: RunningHub, client: Client) -> None:
    loopback = create_app(hub, None, redirect_uris=("http://127.0.0.1/cb",))
    document = store_document(hub)
    pkce = {"code_challenge": "c" * 43, "code_challenge_method": "S256"}
    with hub.client() as visitor:
        for address, host in (
            (client.address(), "app.example"),
            (client.address(state="s" * 4096), "app.example"),
            (loopback.address(redirect_uri="http://127.0.0.1:5000/cb"), "this computer (127.0.0.1)"),
            (document.address(scope="openid", **pkce), "notes.example"),
        ):
            page = sign_in_page(visitor, visitor.get(address)).text
            assert re.search(rf"You will continue to <span[^>]*>{re.escape(host)}</span>", page), host
        form = Page(visitor.get(visitor.get(client.address()).headers["location"])).hidden()
        wrong = visitor.post("/login", data={**form, "username": "ada", "password": "wrong password"})
        assert (wrong.status_code, "app.example" in wrong.text) == (422, True)
        for next_page in (
            "/",
            "/settings/tokens",
            "/oauth/authorize?client_id=https://bank.example/x",
            "/oauth/authorize",
        ):
            page = visitor.get("/login", params={"next": next_page})
            assert (page.status_code, "continue to" in page.text) == (200, False)


def test_login_hint_is_filled_in(hub: RunningHub, client: Client) -> None:
    with hub.client() as visitor:
        page = sign_in_page(visitor, visitor.get(client.address(login_hint='ada"@example.org')))
        assert 'value="ada&#34;@example.org"' in page.text
        page = sign_in_page(visitor, visitor.get(client.address(login_hint="x" * 300)))
        assert 'name="username" type="text" value=""' in page.text


def test_signed_in_user_is_sent_on_from_the_sign_in_page(hub: RunningHub, client: Client) -> None:
    with signed_in(client) as browser:
        assert browser.get("/login", params={"next": "/settings"}).status_code == 303
        page = browser.get("/login", params={"next": "/settings", "again": "1"})
    assert page.status_code == 200
    assert "/join" not in page.text
