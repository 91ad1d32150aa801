"""`/api/settings/sessions`: where a user is signed in, listed and ended with a token."""

from typing import Any

import httpx
import pytest
from tests.bed.people import PASSWORD, api, browser_of, create_token, create_user, submit
from tests.bed.running_hub import RunningHub

PATH = "/api/settings/sessions"


def listed(hub: RunningHub, token: str) -> list[dict[str, Any]]:
    with api(hub, token) as client:
        response = client.get(PATH)
        assert response.status_code == 200, response.text
        found: list[dict[str, Any]] = response.json()
        return found


@pytest.mark.one_engine
def test_sessions_are_listed(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    token = create_token(hub, ada, "read")
    with browser_of(hub, ada) as mine, browser_of(hub, bob):
        (session,) = listed(hub, token)
        assert session == {
            "id": session["id"],
            "createdAt": "2026-09-21T14:13:20.000Z",
            "lastUsedAt": "2026-09-21T14:13:20.000Z",
            "ip": "127.0.0.1",
            "userAgent": "tests",
        }
        assert mine.cookies["token"] not in str(session)


@pytest.mark.one_engine
def test_long_user_agent_is_truncated(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with hub.client(headers={"user-agent": "Mozilla/5.0 " + "x" * 5000}) as browser:
        assert submit(browser, "/login", username="ada", password=PASSWORD).status_code == 303
    (session,) = listed(hub, create_token(hub, ada))
    assert session["userAgent"] == "Mozilla/5.0 " + "x" * 288


def test_list_has_pages(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    for _ in range(5):
        browser_of(hub, ada).close()
    with api(hub, create_token(hub, ada)) as client:
        found, address = [], f"{PATH}?limit=2"
        while address:
            page = client.get(address)
            found += [item["id"] for item in page.json()]
            address = page.links.get("next", {}).get("url", "")
    assert len(found) == len(set(found)) == 5
    assert found == sorted(found, reverse=True)


def test_write_token_ends_a_session(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    reader, writer = create_token(hub, ada, "read"), create_token(hub, ada, "write")
    with browser_of(hub, ada) as browser:
        (session,) = listed(hub, reader)
        address = f"{PATH}/{session['id']}"
        with api(hub, reader) as client:
            assert client.delete(address).status_code == 403
        assert browser.get("/settings/sessions").status_code == 200
        with api(hub, writer) as client:
            assert client.delete(address).status_code == 204
            assert client.delete(address).status_code == 404
        assert browser.get("/settings/sessions").status_code == 303
    assert listed(hub, writer) == []


@pytest.mark.one_engine
def test_another_users_session_is_404_and_continues(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    mine, theirs = create_token(hub, ada), create_token(hub, bob)
    with browser_of(hub, bob) as browser:
        (session,) = listed(hub, theirs)
        with api(hub, mine) as client:
            for session_id in (session["id"], "0" * 24, "x"):
                assert client.delete(f"{PATH}/{session_id}").status_code == 404
        assert browser.get("/settings/sessions").status_code == 200


@pytest.mark.one_engine
def test_request_without_a_token_is_401(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        assert client.get(PATH).status_code == 401
    assert httpx.get(hub.url + PATH).status_code == 401
    assert httpx.delete(f"{hub.url}{PATH}/x").status_code == 401
