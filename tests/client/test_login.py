"""Login with a device code or with a browser on this machine, and logout."""

import asyncio
import socket
import threading
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tests.bed.apps import create_app
from tests.bed.devices import approve, decide, enter
from tests.bed.hostile import json_response, run_hostile_server
from tests.bed.people import Page, browser_of, create_user
from tests.bed.running_hub import RunningHub
from tests.bed.sleepless_drivers import without_sleeping

from hubgate import AsyncHub, Hub
from hubgate.client import errors
from hubgate.client.store import Store

CODE = {"device_code": "hf_device_x", "user_code": "AAAA-BBBB", "verification_uri": "http://x/", "interval": 5}
GIVEN = {"access_token": "hf_a", "token_type": "bearer", "expires_in": 10}
ME = {"id": "0" * 24, "name": "ada", "type": "user", "orgs": [], "auth": {}}


def pending(error: str) -> bytes:
    return json_response(400, {"error": error})


def test_login_with_device_code_and_logout(sqlite_hub: RunningHub, tmp_path: Path) -> None:
    ada, shown = create_user(sqlite_hub, "ada"), []

    def allow(_: float) -> None:
        approve(sqlite_hub, ada, shown[0].user_code, "openid profile")

    with Hub(sqlite_hub.url, config_folder=tmp_path) as hub:
        assert without_sleeping(hub, allow).login(shown.append).name == "ada"
        assert shown[0].verification_uri == f"{sqlite_hub.url}/oauth/device"
        assert shown[0].device_code not in repr(shown[0])
        assert hub.whoami().name == "ada"
    kept = Store(tmp_path).load()
    assert (kept.endpoint, kept.hubs[sqlite_hub.url].name) == (sqlite_hub.url, "ada")
    token = kept.hubs[sqlite_hub.url].access_token
    with Hub(config_folder=tmp_path) as hub:
        assert hub.logout() is True
        assert hub.logout() is False
    with Hub(sqlite_hub.url, token) as hub, pytest.raises(errors.NotSignedIn):
        hub.whoami()
    assert Store(tmp_path).load().hubs == {}


def test_denied_login_raises_sign_in_denied(sqlite_hub: RunningHub, tmp_path: Path) -> None:
    ada, shown = create_user(sqlite_hub, "ada"), []

    def deny(_: float) -> None:
        with browser_of(sqlite_hub, ada) as browser:
            decide(browser, enter(browser, shown[0].user_code), "deny")

    with Hub(sqlite_hub.url, config_folder=tmp_path) as hub, pytest.raises(errors.SignInDenied):
        without_sleeping(hub, deny).login(shown.append)
    assert not (tmp_path / "credentials.json").exists()


def test_polling_follows_the_interval_and_slow_down(tmp_path: Path) -> None:
    answers = [
        pending("authorization_pending"),
        pending("slow_down"),
        b"",
        json_response(502, {}),
        json_response(200, GIVEN),
    ]
    waits: list[float] = []
    given = (json_response(200, CODE), *answers, json_response(200, ME))
    with run_hostile_server(*given) as server, Hub(server.url, config_folder=tmp_path, retries=0) as hub:
        without_sleeping(hub, waits.append).login(lambda _: None)
    assert waits == [5.0, 5.0, 10.0, 10.0, 10.0]


@pytest.mark.parametrize(
    ("last", "raised"),
    [
        (pending("expired_token"), errors.SignInExpired),
        (pending("invalid_grant"), errors.SignInFailed),
        (json_response(200, {"token_type": "bearer"}), errors.UnexpectedResponse),
        (json_response(200, {**GIVEN, "access_token": "a\nb"}), errors.UnexpectedResponse),
    ],
)
def test_oauth_errors_end_the_login(last: bytes, raised: type[Exception], tmp_path: Path) -> None:
    with run_hostile_server(json_response(200, CODE), last) as server:
        hub = without_sleeping(Hub(server.url, config_folder=tmp_path, retries=0), lambda _: None)
        with hub, pytest.raises(raised):
            hub.login(lambda _: None)


REDIRECT = "http://127.0.0.1/callback"


def consent(sqlite_hub: RunningHub, address: str) -> str:
    """What a signed-in user's browser ends at after Allow."""
    ada = create_user(sqlite_hub, "ada")
    target = urlsplit(address)
    with browser_of(sqlite_hub, ada) as browser:
        asked = browser.get(f"{target.path}?{target.query}")
        scopes = parse_qs(target.query)["scope"][0].split()
        form = {**Page(asked).hidden(), "decision": "approve", "scopes": scopes}
        back = browser.post(f"{target.path}?{target.query}", data=form)
    assert back.status_code == 303, back.text
    return back.headers["location"]


def test_login_in_browser(sqlite_hub: RunningHub, tmp_path: Path) -> None:
    app = create_app(sqlite_hub, redirect_uris=(REDIRECT,), scopes=("openid", "profile"), confidential=False)
    seen: list[httpx.Response] = []
    visits: list[threading.Thread] = []

    def open_browser(address: str) -> None:
        query = parse_qs(urlsplit(address).query)
        assert query["code_challenge_method"] == ["S256"]
        back = consent(sqlite_hub, address)
        port = urlsplit(query["redirect_uri"][0]).port

        def visit() -> None:
            # Somebody else's page sends a browser there first, with a code and a state of its own.
            fouls = ("/callback?code=theirs&state=wrong", "/", "/callback", f"/other{back[back.index('?') :]}")
            seen.extend(httpx.get(f"http://127.0.0.1:{port}{foul}") for foul in fouls)
            with socket.create_connection(("127.0.0.1", port or 0)) as rude:
                rude.sendall(b"\x00garbage\r\n\r\n")
            seen.append(httpx.get(back))

        visits.append(threading.Thread(target=visit, daemon=True))
        visits[0].start()

    with Hub(sqlite_hub.url, config_folder=tmp_path) as hub:
        assert hub.login_in_browser(app.id, open_browser=open_browser, seconds=60).name == "ada"
        assert hub.whoami().name == "ada"
    visits[0].join(60)
    assert [answer.status_code for answer in seen] == [404, 404, 404, 404, 200]
    assert "Done" in seen[-1].text
    assert "theirs" not in seen[0].text
    assert Store(tmp_path).load().hubs[sqlite_hub.url].client_id == app.id


def test_login_in_browser_times_out(tmp_path: Path) -> None:
    with Hub("http://127.0.0.1:1", config_folder=tmp_path) as hub, pytest.raises(errors.SignInExpired):
        hub.login_in_browser("app", open_browser=lambda _: None, seconds=0.3)


@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        ("error=access_denied", errors.SignInDenied),
        ("error=server_error&error_description=x", errors.SignInFailed),
        ("code=c&iss=http://evil.example", errors.UnexpectedResponse),
        ("code=", errors.UnexpectedResponse),
        ("code=a&code=b", errors.UnexpectedResponse),
    ],
)
async def test_redirects_without_a_code_are_rejected(answer: str, raised: type[Exception], tmp_path: Path) -> None:
    visits: list[threading.Thread] = []

    def open_browser(address: str) -> None:
        query = parse_qs(urlsplit(address).query)
        back = f"{query['redirect_uri'][0]}?state={query['state'][0]}&{answer}"
        visits.append(threading.Thread(target=httpx.get, args=(back,), daemon=True))
        visits[0].start()

    async with AsyncHub("http://127.0.0.1:1", config_folder=tmp_path) as hub:
        with pytest.raises(raised):
            await hub.login_in_browser("app", open_browser=open_browser, seconds=60)
    # An error of the thread would show in a later test.
    await asyncio.to_thread(visits[0].join, 60)
