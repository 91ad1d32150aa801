"""Forms are accepted only from pages rendered for the same browser."""

import re

import httpx
import pytest
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine


def csrf_in(page: httpx.Response) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', page.text)
    assert found
    return found.group(1)


def choose(client: httpx.Client, csrf: str, **more: str) -> httpx.Response:
    return client.post("/theme", data={"csrf": csrf, "theme": "dark", "next": "/docs/api", **more})


def test_fetched_form_can_be_submitted(hub: RunningHub) -> None:
    with hub.client() as client:
        response = choose(client, csrf_in(client.get("/")))
        assert (response.status_code, response.headers["location"]) == (303, "/docs/api")
        assert 'data-theme="dark"' in client.get("/").text


def test_missing_or_foreign_csrf_token_is_403(hub: RunningHub) -> None:
    with hub.client() as mine, hub.client() as theirs:
        own, foreign = csrf_in(mine.get("/")), csrf_in(theirs.get("/"))
        for value in ("", foreign, own[:-2], "nonsense", "é"):
            assert choose(mine, value).status_code == 403
        assert mine.post("/theme", data={"theme": "dark"}).status_code == 403
        assert choose(mine, own).status_code == 303


def test_csrf_token_without_its_cookie_is_rejected(hub: RunningHub) -> None:
    with hub.client() as client:
        value = csrf_in(client.get("/"))
        client.cookies.clear()
        assert choose(client, value).status_code == 403


def test_csrf_token_ends_at_sign_in(hub: RunningHub) -> None:
    """From then on it is bound to the session cookie."""
    with hub.client() as client:
        value = csrf_in(client.get("/"))
        client.cookies.set("token", "a-session")
        assert choose(client, value).status_code == 403
        assert choose(client, csrf_in(client.get("/"))).status_code == 303


def test_cross_site_form_is_rejected_by_fetch_metadata(hub: RunningHub) -> None:
    with hub.client() as client:
        value = csrf_in(client.get("/"))
        client.headers["sec-fetch-site"] = "cross-site"
        assert choose(client, value).status_code == 403
        client.headers["sec-fetch-site"] = "same-origin"
        assert choose(client, value).status_code == 303


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "/\\evil.example", "evil", "", "/a\tb", "/%0d%0a\r\nx"]
)
def test_return_url_stays_on_the_hub(hub: RunningHub, target: str) -> None:
    with hub.client() as client:
        response = choose(client, csrf_in(client.get("/")), next=target)
    assert (response.status_code, response.headers["location"]) == (303, "/")


def test_form_in_another_encoding_is_rejected(hub: RunningHub) -> None:
    with hub.client() as client:
        value = csrf_in(client.get("/"))
        assert client.post("/theme", json={"csrf": value, "theme": "dark"}).status_code == 415
        assert client.post("/theme", data={"csrf": value}, files={"theme": b"dark"}).status_code == 415


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1.evil.example"])
def test_another_origin_is_rejected(hub: RunningHub, origin: str) -> None:
    with hub.client() as client:
        value = csrf_in(client.get("/"))
        client.headers["origin"] = origin
        assert choose(client, value).status_code == 403
        client.headers["origin"] = hub.url
        assert choose(client, value).status_code == 303


def test_planted_second_cookie_is_rejected(hub: RunningHub) -> None:
    with hub.client() as mine, hub.client() as attacker:
        mine.get("/")
        planted = csrf_in(attacker.get("/"))
        cookies = f"csrf={mine.cookies['csrf']}; csrf={attacker.cookies['csrf']}"
        response = httpx.post(f"{hub.url}/theme", data={"csrf": planted, "theme": "dark"}, headers={"cookie": cookies})
    assert response.status_code == 403


def test_cross_site_post_does_not_replace_the_visitors_cookie(hub: RunningHub) -> None:
    response = httpx.post(f"{hub.url}/theme", data={"theme": "dark"}, headers={"sec-fetch-site": "cross-site"})
    assert response.status_code == 403
    assert "set-cookie" not in response.headers
