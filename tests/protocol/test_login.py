"""`/login` and `/logout`: in with a name or an address, on to where one was going, and out again."""

import re
from html import unescape

import httpx
import pytest
from tests.bed.people import PASSWORD, browser_of, make_user, submit
from tests.bed.running import RunningHub

pytestmark = pytest.mark.one_engine

NO_MATCH = "Wrong username or password."


def is_signed_in(client: httpx.Client) -> bool:
    return client.get("/settings/profile").status_code == 200


@pytest.mark.parametrize("username", ["Ada", "ada", "ada@example.org", " ADA@example.org "])
def test_a_name_or_an_address_and_the_password(hub: RunningHub, username: str) -> None:
    make_user(hub, "Ada")
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
def test_what_does_not_match_comes_back_with_the_name(hub: RunningHub, username: str, password: str) -> None:
    make_user(hub, "ada")
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


def test_a_disabled_account_is_told_so_only_with_its_password(hub: RunningHub) -> None:
    from hubgate.server.accounts import store

    ada = make_user(hub, "ada")
    hub.call(lambda opened: opened.db.write(lambda tx: store.set_disabled(tx, ada.id, 1)))
    with hub.client() as client:
        right = submit(client, "/login", username="ada", password=PASSWORD)
        wrong = submit(client, "/login", username="ada", password="wrong password")
    assert right.status_code == 403
    assert "This account is disabled." in right.text
    assert "token" not in client.cookies
    assert (wrong.status_code, "disabled" in wrong.text) == (422, False)


def test_the_way_leads_on(hub: RunningHub) -> None:
    make_user(hub, "ada")
    with hub.client() as client:
        asked = client.get("/settings/tokens?page=2&x=%2F")
        assert asked.status_code == 303
        form = client.get(asked.headers["location"])
        hidden = unescape(form.text.partition('name="next" value="')[2].partition('"')[0])
        response = submit(client, asked.headers["location"], username="ada", password=PASSWORD, next=hidden)
        assert response.headers["location"] == "/settings/tokens?page=2&x=%2F"


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:x", "é"])
def test_the_way_on_stays_here(hub: RunningHub, target: str) -> None:
    ada = make_user(hub, "ada")
    with hub.client() as client:
        assert "evil" not in client.get("/login", params={"next": target}).text
        response = submit(client, "/login", username="ada", password=PASSWORD, next=target)
        assert response.headers["location"] == "/"
    with browser_of(hub, ada) as client:
        assert client.get("/login", params={"next": target}).headers["location"] == "/"


@pytest.mark.parametrize("door", ["/login", "/join"])
def test_whoever_is_in_is_sent_on(hub: RunningHub, door: str) -> None:
    with browser_of(hub, make_user(hub, "ada")) as client:
        response = client.get(door, params={"next": "/settings/tokens?a=b"})
    assert (response.status_code, response.headers["location"]) == (303, "/settings/tokens?a=b")


def test_out_is_out_on_the_server(hub: RunningHub) -> None:
    with browser_of(hub, make_user(hub, "ada")) as client:
        old = client.cookies["token"]
        response = submit(client, "/", "/logout")
        assert (response.status_code, response.headers["location"]) == (303, "/")
        assert "token" not in client.cookies
        assert "You are signed out." in client.get("/").text
        client.cookies.set("token", old)
        assert not is_signed_in(client)


def test_out_without_having_been_in(hub: RunningHub) -> None:
    with hub.client() as client:
        hidden = client.get("/login").text.partition('name="csrf" value="')[2].partition('"')[0]
        assert client.post("/logout", data={"csrf": hidden}).status_code == 303


def test_no_form_without_its_field(hub: RunningHub) -> None:
    """Signed in against one's will, one would work in a stranger's account."""
    make_user(hub, "ada")
    with hub.client() as client:
        assert client.post("/login", data={"username": "ada", "password": PASSWORD}).status_code == 403
        assert client.post("/logout", data={"csrf": ""}).status_code == 403


@pytest.mark.parametrize("door", ["/login", "/join"])
def test_headers(hub: RunningHub, door: str) -> None:
    """Its post may end at an app, and Chromium applies form-action along the redirects."""
    with hub.client() as client:
        headers = client.get(door).headers
        assert "form-action" in client.get("/").headers["content-security-policy"]
    assert "form-action" not in headers["content-security-policy"]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"


def test_a_form_sent_with_field_names_doubled_is_refused(hub: RunningHub) -> None:
    make_user(hub, "ada")
    with hub.client() as client:
        response = submit(client, "/login", username=["ada", "bob"], password=PASSWORD)
    assert response.status_code == 400
