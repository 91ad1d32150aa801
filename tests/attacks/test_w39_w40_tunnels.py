"""W39, W40: a tunnel link reveals no credential, runs nothing in the hub's origin, and cannot be guessed or taken."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Browser
from tests.bed.app_webhooks import AppWebhookScenario
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, browser_of, create_token, create_user
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import create_webhook, logs, settle
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from hubgate.server.clock import HOUR, SECOND

PAGE = b"<!doctype html><title>pwned</title><script>document.title='ran'; fetch('/pwned')</script>"
EXPIRES = 72 * HOUR // SECOND


@contextmanager
def socket_to(hub: RunningHub, tunnel_id: str, token: str) -> Iterator[ClientConnection]:
    url = f"ws{hub.url.removeprefix('http')}/api/tunnels/{tunnel_id}"
    headers = {"Authorization": f"Bearer {token}"}
    with connect(url, additional_headers=headers, proxy=None, close_timeout=2) as socket:
        yield socket


class HostileReceiver:
    """Answers every request with a page, and tries to set a cookie and a media type."""

    def __init__(self, socket: ClientConnection) -> None:
        self.heads: list[dict[str, Any]] = []
        self._socket = socket
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for message in self._socket:
                assert isinstance(message, bytes)
                head = json.loads(message.partition(b"\n")[0])
                self.heads.append(head)
                headers = [["Set-Cookie", "token=stolen"], ["Content-Type", "text/html"], ["Location", "/pwned"]]
                answer = {"id": head["id"], "status": 200, "headers": headers, "contentType": "text/html"}
                self._socket.send(json.dumps(answer).encode() + b"\n" + PAGE)
        except ConnectionClosed:
            pass


@pytest.mark.one_engine
@pytest.mark.browser
@pytest.mark.parametrize("own_host", [False, True])
def test_w39_browser_of_a_signed_in_user_sends_no_credentials_and_runs_nothing(
    engine: Engine, tmp_path: Any, browser: Browser, own_host: bool
) -> None:
    settings = settings_for(engine.fresh_url(), tmp_path)
    with run_hub(settings) as before:
        user = create_user(before, "ada")
        token = create_token(before, user)
    given = {"tunnel_host": f"tunnels.localhost:{before.settings.port}", "port": str(before.settings.port)}
    with run_hub(settings_for(settings.database_url, tmp_path, **(given if own_host else {}))) as hub:
        with api(hub, token) as client:
            tunnel = client.post("/api/tunnels").json()
        assert own_host is (".tunnels.localhost" in tunnel["url"])
        with browser_of(hub, user) as signed_in:
            cookie = signed_in.cookies["token"]
        with socket_to(hub, tunnel["id"], token) as socket:
            receiver = HostileReceiver(socket)
            context = browser.new_context(base_url=hub.url)
            try:
                context.add_cookies([{"name": "token", "value": cookie, "url": hub.url}])
                _check_in_browser(context.new_page(), hub.url, tunnel["url"], receiver)
                assert {one["value"] for one in context.cookies()} == {cookie}
            finally:
                context.close()


def _check_in_browser(page: Any, hub_url: str, link: str, receiver: HostileReceiver) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    shown = page.goto(f"{link}webhooks/train")
    assert (shown.status, page.title(), receiver.heads) == (200, "A webhook receiver", [])
    assert page.evaluate("self.origin") == "null", "a sandbox has no origin"
    page.goto(hub_url)
    form = f"""
        const form = document.createElement('form');
        form.method = 'post'; form.action = '{link}webhooks/train'; document.body.append(form);
    """
    page.goto("about:blank")
    # A POST whose answer the browser shows: it is not shown as a page.
    page.evaluate(form)
    with page.expect_navigation():
        page.evaluate("document.forms[0].submit()")
    assert page.title() != "ran"
    assert "/pwned" not in asked
    (head,) = receiver.heads
    names = {name.lower() for name, _ in head["headers"]}
    assert not names & {"cookie", "authorization", "set-cookie"}


@pytest.mark.one_engine
def test_w39_credentials_cross_in_neither_direction(hub: RunningHub) -> None:
    user = create_user(hub, "ada")
    token = create_token(hub, user)
    with api(hub, token) as client:
        tunnel = client.post("/api/tunnels").json()
        with browser_of(hub, user) as signed_in:
            cookies = dict(signed_in.cookies)
        with socket_to(hub, tunnel["id"], token) as socket:
            receiver = HostileReceiver(socket)
            # `client` sends its token with every request.
            header = "; ".join(f"{name}={value}" for name, value in cookies.items())
            answer = client.post(f"/tunnel/{tunnel['id']}/webhooks/x", headers={"Cookie": header}, content=b"{}")
    assert (answer.status_code, answer.content) == (200, PAGE)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not {"set-cookie", "location", "access-control-allow-origin"} & set(answer.headers)
    sent = json.dumps(receiver.heads)
    assert token not in sent
    assert not any(value in sent for value in cookies.values())


def test_w40_guessed_and_expired_links_are_not_found(hub: RunningHub) -> None:
    token = create_token(hub, create_user(hub, "ada"))
    with api(hub, token) as ada:
        tunnel = ada.post("/api/tunnels").json()
        assert len(tunnel["id"]) == 26, "130 random bits"
        link = f"/tunnel/{tunnel['id']}"
        webhook = create_webhook(ada, f"{tunnel['url']}webhooks/x", "user:ada")
        for guess in ("/tunnel/" + "a" * 26, f"{link}x", link[:-1], link.upper()):
            assert ada.get(guess).status_code == 404
            assert ada.post(f"{guess}/webhooks/x", content=b"{}").status_code == 404
        with socket_to(hub, tunnel["id"], token) as socket:
            hub.clock.advance(EXPIRES - 1)
            assert ada.get(link).status_code == 200
            hub.clock.advance(1)
            assert ada.get(link).status_code == 404
            assert ada.post(f"{link}/webhooks/x", content=b"{}").status_code == 404
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv(60)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 4404
        assert ada.get(f"/api/tunnels/{tunnel['id']}").status_code == 404
        # A delivery to it fails in the same way, without being dialled.
        assert ada.post("/api/repos/create", json={"name": "corpus", "type": "model"}).status_code == 200
        settle(hub)
        (delivery,) = logs(ada, webhook)
        assert (delivery["state"], delivery["status"]) == ("retrying", 404)


@pytest.mark.one_engine
def test_w40_others_cannot_attach_to_a_link(hub: RunningHub) -> None:
    token, stranger = (create_token(hub, create_user(hub, name)) for name in ("ada", "eve"))
    with api(hub, token) as ada, api(hub, stranger) as eve:
        tunnel_id = ada.post("/api/tunnels").json()["id"]
        for method in ("GET", "DELETE"):
            assert eve.request(method, f"/api/tunnels/{tunnel_id}").status_code == 404
        with pytest.raises(InvalidStatus) as refused, socket_to(hub, tunnel_id, stranger):
            pass
        assert refused.value.response.status_code == 404
        assert ada.get(f"/api/tunnels/{tunnel_id}").status_code == 200


@pytest.mark.one_engine
def test_w40_apps_cannot_attach_to_links_that_they_did_not_open(hub: RunningHub) -> None:
    """An app reads the addresses of the user's webhooks, but neither their deliveries nor their secrets (O74, W41)."""
    stage = AppWebhookScenario(hub)
    app_token = stage.grant("openid webhooks")
    with api(hub, stage.token) as owner, api(hub, app_token) as app:
        tunnel = owner.post("/api/tunnels").json()
        create_webhook(owner, f"{tunnel['url']}webhooks/x", "user:ada")
        assert tunnel["id"] in app.get("/api/settings/webhooks").text
        with pytest.raises(InvalidStatus) as refused, socket_to(hub, tunnel["id"], app_token):
            pass
        assert refused.value.response.status_code == 404
        for method in ("GET", "DELETE"):
            assert app.request(method, f"/api/tunnels/{tunnel['id']}").status_code == 404
        own = app.post("/api/tunnels").json()["id"]
        with socket_to(hub, own, app_token):
            assert app.get(f"/api/tunnels/{own}").status_code == 200
        opened = [app.post("/api/tunnels").status_code for _ in range(60)]
        assert opened == [*[201] * 59, 429]
        assert owner.get(f"/api/tunnels/{tunnel['id']}").status_code == 200, "apps remove only links of apps"
        assert owner.post("/api/tunnels").status_code == 201


@pytest.mark.one_engine
def test_w27_hub_is_reached_through_a_tunnel_link_only(hub: RunningHub) -> None:
    """A link to another path, and other addresses of the hub, are rejected."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        link = ada.post("/api/tunnels").json()["url"]
        watched = [{"type": "user", "name": "ada"}]
        for url in (link, f"{link}other", f"{link}webhooks/../api", f"{hub.url}/webhooks/x", f"{hub.url}/api/tunnels"):
            refused = ada.post("/api/settings/webhooks", json={"url": url, "watched": watched})
            assert refused.status_code == 422, url
        assert (
            "begin with /webhooks/"
            in ada.post("/api/settings/webhooks", json={"url": link, "watched": watched}).json()["error"]
        )
        accepted = ada.post("/api/settings/webhooks", json={"url": f"{link}webhooks/x", "watched": watched})
        assert accepted.status_code == 200
    assert httpx.get(link).status_code == 200


@pytest.mark.browser
@pytest.mark.one_engine
def test_w39_page_of_a_link_is_readable_in_both_themes(hub: RunningHub, browser: Browser) -> None:
    """Its policy allows one style sheet: text must not have the colour of the background."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        link = ada.post("/api/tunnels").json()["url"]
    for theme, colour in (("light", "rgb(0, 0, 0)"), ("dark", "rgb(255, 255, 255)")):
        with browser.new_context(color_scheme=theme) as context:
            page = context.new_page()
            page.goto(link)
            assert page.evaluate("getComputedStyle(document.querySelector('p')).color") == colour
