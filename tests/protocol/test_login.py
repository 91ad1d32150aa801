"""`/login` and `/logout`: sign in with a name or an address, continue where one was going, and sign out."""

import re
from html import unescape

import httpx
import pytest
from tests.bed.people import PASSWORD, browser_of, create_user, submit
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine

NO_MATCH = "Wrong username or password."


def is_signed_in(client: httpx.Client) -> bool:
    return client.get("/settings/profile").status_code == 200


@pytest.mark.parametrize("username", ["Ada", "ada", "ada@example.org", " ADA@example.org "])
def test_name_or_address_and_password_sign_in(hub: RunningHub, username: str) -> None:
    create_user(hub, "Ada")
    with hub.client() as client:
        response = submit(client, "/login", username=username, password=PASSWORD)
        assert (response.status_code, response.headers["location"]) == (303, "/")
        cookie = response.headers["set-cookie"]
        assert cookie.startswith("token=")
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert "Path=/" in cookie
        assert is_signed_in(client)


@pytest.mark.parametrize(
    ("username", "password"),
    [("ada", "wrong password"), ("nobody", PASSWORD), ("nobody@example.org", PASSWORD), ("", ""), ("ada", "")],
)
def test_failed_sign_in_retains_the_typed_name(hub: RunningHub, username: str, password: str) -> None:
    create_user(hub, "ada")
    with hub.client() as client:
        response = submit(client, "/login?next=/settings/tokens", username=username, password=password)
        assert response.status_code == 422
        assert response.text.count(NO_MATCH) == 1
        assert f'<p id="form-error">{NO_MATCH}</p>' in response.text
        for field in ("username", "password"):
            (control,) = re.findall(f'<input class="input" id="{field}"[^>]*>', response.text)
            assert 'aria-invalid="true" aria-describedby="form-error"' in control
        assert "<title>Error: Sign in" in response.text
        assert f'name="username" type="text" value="{username}"' in response.text
        assert 'name="next" value="/settings/tokens"' in response.text
        assert 'name="password" type="password" value=""' in response.text
        assert "token" not in client.cookies


def test_disabled_account_is_named_only_with_its_password(hub: RunningHub) -> None:
    from hubgate.server.accounts import store

    ada = create_user(hub, "ada")
    hub.call(lambda opened: opened.db.write(lambda tx: store.set_disabled(tx, ada.id, 1)))
    with hub.client() as client:
        right = submit(client, "/login", username="ada", password=PASSWORD)
        wrong = submit(client, "/login", username="ada", password="wrong password")
    assert right.status_code == 403
    assert "This account is disabled." in right.text
    assert "token" not in client.cookies
    assert (wrong.status_code, "disabled" in wrong.text) == (422, False)


def test_sign_in_continues_to_the_next_page(hub: RunningHub) -> None:
    create_user(hub, "ada")
    with hub.client() as client:
        asked = client.get("/settings/tokens?page=2&x=%2F")
        assert asked.status_code == 303
        form = client.get(asked.headers["location"])
        hidden = unescape(form.text.partition('name="next" value="')[2].partition('"')[0])
        response = submit(client, asked.headers["location"], username="ada", password=PASSWORD, next=hidden)
        assert response.headers["location"] == "/settings/tokens?page=2&x=%2F"


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:x", "é"])
def test_next_page_stays_on_the_hub(hub: RunningHub, target: str) -> None:
    ada = create_user(hub, "ada")
    with hub.client() as client:
        assert "evil" not in client.get("/login", params={"next": target}).text
        response = submit(client, "/login", username="ada", password=PASSWORD, next=target)
        assert response.headers["location"] == "/"
    with browser_of(hub, ada) as client:
        assert client.get("/login", params={"next": target}).headers["location"] == "/"


@pytest.mark.parametrize("door", ["/login", "/join"])
def test_signed_in_user_is_sent_on(hub: RunningHub, door: str) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        response = client.get(door, params={"next": "/settings/tokens?a=b"})
    assert (response.status_code, response.headers["location"]) == (303, "/settings/tokens?a=b")


def test_sign_out_ends_the_session_on_the_server(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        old = client.cookies["token"]
        response = submit(client, "/", "/logout")
        assert (response.status_code, response.headers["location"]) == (303, "/")
        assert "token" not in client.cookies
        assert "You are signed out." in client.get("/").text
        client.cookies.set("token", old)
        assert not is_signed_in(client)


def test_sign_out_without_a_session_works(hub: RunningHub) -> None:
    with hub.client() as client:
        hidden = client.get("/login").text.partition('name="csrf" value="')[2].partition('"')[0]
        assert client.post("/logout", data={"csrf": hidden}).status_code == 303


def test_form_without_csrf_token_is_rejected(hub: RunningHub) -> None:
    """Otherwise a visitor could be signed in to a stranger's account unnoticed."""
    create_user(hub, "ada")
    with hub.client() as client:
        assert client.post("/login", data={"username": "ada", "password": PASSWORD}).status_code == 403
        assert client.post("/logout", data={"csrf": ""}).status_code == 403


@pytest.mark.parametrize("door", ["/login", "/join"])
def test_form_action_allows_redirects_to_apps(hub: RunningHub, door: str) -> None:
    """The form may end at an app, and Chromium applies form-action to redirects."""
    with hub.client() as client:
        headers = client.get(door).headers
        assert "form-action" in client.get("/").headers["content-security-policy"]
    assert "form-action" not in headers["content-security-policy"]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"


def test_form_with_repeated_fields_is_rejected(hub: RunningHub) -> None:
    create_user(hub, "ada")
    with hub.client() as client:
        response = submit(client, "/login", username=["ada", "bob"], password=PASSWORD)
    assert response.status_code == 400
