"""Tunnels: temporary links to receivers on machines that the hub cannot reach."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from tests.bed.background_delivery import deliver_in_background
from tests.bed.engines import Engine, settings_for
from tests.bed.lean_http import LeanClient
from tests.bed.people import api, create_token, create_user
from tests.bed.processes import until
from tests.bed.receiver_library import SECRET
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.tunnels import share_receiver
from tests.bed.webhooks import create_webhook, logs, settle
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from hubgate.client.errors import Forbidden
from hubgate.receiver.testing import signed_delivery
from hubgate.server.clock import HOUR, SECOND, system_clock

pytestmark = pytest.mark.usefixtures("present")


@pytest.fixture
def present(hub: RunningHub) -> None:
    """Receivers reject deliveries that are more than five minutes old."""
    hub.clock.now = system_clock()


def open_tunnel(client: httpx.Client) -> dict[str, Any]:
    opened = client.post("/api/tunnels")
    assert opened.status_code == 201, opened.text
    tunnel: dict[str, Any] = opened.json()
    return tunnel


@contextmanager
def socket_to(hub: RunningHub, tunnel_id: str, token: str | None) -> Iterator[ClientConnection]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"ws{hub.url.removeprefix('http')}/api/tunnels/{tunnel_id}"
    with connect(url, additional_headers=headers, proxy=None, compression=None, close_timeout=2) as socket:
        yield socket


def refused_status(hub: RunningHub, tunnel_id: str, token: str | None) -> int:
    with pytest.raises(InvalidStatus) as refusal, socket_to(hub, tunnel_id, token):
        pass
    return refusal.value.response.status_code


def read_request(socket: ClientConnection) -> tuple[dict[str, Any], bytes]:
    message = socket.recv(60)
    assert isinstance(message, bytes)
    head, _, body = message.partition(b"\n")
    return json.loads(head), body


def answer(socket: ClientConnection, request_id: str, status: int, body: bytes = b"{}", **more: Any) -> None:
    socket.send(json.dumps({"id": request_id, "status": status, **more}).encode() + b"\n" + body)


def close_code(socket: ClientConnection) -> int | None:
    with pytest.raises(ConnectionClosed) as closed:
        socket.recv(60)
    return closed.value.rcvd.code if closed.value.rcvd else None


class Posting:
    """A POST in a thread."""

    def __init__(self, url: str, **options: Any) -> None:
        self._answers: list[httpx.Response] = []
        self._thread = Thread(target=lambda: self._answers.append(httpx.post(url, timeout=60, **options)))
        self._thread.start()

    @property
    def is_answered(self) -> bool:
        return bool(self._answers)

    def answer(self) -> httpx.Response:
        self._thread.join(60)
        return self._answers[0]


def test_receiver_on_loopback_gets_deliveries_through_its_link(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    token = create_token(hub, create_user(hub, "ada"))
    with api(hub, token) as ada, share_receiver(monkeypatch, hub.url, token) as shared:
        assert shared.link == f"{hub.url}/tunnel/{shared.tunnel_id}/"
        printed = capsys.readouterr().out
        assert f": {shared.link}\n  POST {shared.link}webhooks/train\n" in printed
        webhook = create_webhook(ada, f"{shared.link}webhooks/train", "user:ada", secret=SECRET)
        create_repo(ada, "corpus")
        create_commit(ada, "ada/corpus", {"a.txt": b"one"})
        shared.answer = {"trained": True}
        settle(hub)
        assert [str(payload.event.scope) for payload in shared.payloads] == ["repo", "repo.content"]
        assert [delivery["state"] for delivery in logs(ada, webhook)] == ["delivered", "delivered"]
        delivery = ada.get(f"/api/settings/webhooks/{webhook['id']}/logs/{logs(ada, webhook)[0]['id']}").json()
        assert json.loads(delivery["tries"][0]["response"]) == {"trained": True}
        link = shared.link
    # The program has stopped, which closed its link.
    assert httpx.post(f"{link}webhooks/train", json={}).status_code == 404
    assert shared.server.share_url is None


@pytest.mark.one_engine
def test_link_forwards_only_posts_to_webhooks(hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    token = create_token(hub, create_user(hub, "ada"))
    with share_receiver(monkeypatch, hub.url, token) as shared, LeanClient(base_url=shared.link) as anyone:
        delivery = signed_delivery("repo.content.update", secret=SECRET)
        shared.answer = {"hello": "<script>"}
        accepted = anyone.post("webhooks/train", headers=delivery.headers, content=delivery.body)
        assert (accepted.status_code, accepted.json()) == (200, {"hello": "<script>"})
        assert accepted.headers["content-type"] == "application/json"
        assert accepted.headers["content-security-policy"] == "sandbox; default-src 'none'"
        assert accepted.headers["x-content-type-options"] == "nosniff"
        assert anyone.post("webhooks/train", content=b"{}").status_code == 401, "the receiver's own check"
        assert anyone.post("webhooks/other", content=b"{}").status_code in (404, 405)
        for path in ("", "webhooks/", "webhooks/../", "webhooks/%2e%2e/x", "other"):
            assert anyone.post(path, content=b"{}").status_code == 404, path
        for path in ("", "webhooks/train", "anything?x=1"):
            page = anyone.get(path)
            assert page.status_code == 200
            assert "temporary link" in page.text
            assert page.headers["content-security-policy"].startswith("sandbox; default-src 'none'; style-src 'sha256-")
        for method in ("PUT", "DELETE", "PATCH"):
            assert anyone.request(method, "webhooks/train").status_code == 405
        assert len(shared.payloads) == 1


@pytest.mark.one_engine
def test_request_and_answer_pass_without_credentials(hub: RunningHub) -> None:
    token = create_token(hub, create_user(hub, "ada"))
    with api(hub, token) as ada:
        tunnel = open_tunnel(ada)
    with socket_to(hub, tunnel["id"], token) as socket:
        sent = {"Cookie": "a=b", "Authorization": "Bearer x", "X-Forwarded-For": "9.9.9.9", "X-Own": "yes"}
        posting = Posting(f"{tunnel['url']}webhooks/a%2Fb?c=d", headers=sent, content=b"\x00raw")
        head, body = read_request(socket)
        assert (head["path"], body) == ("/webhooks/a%2Fb?c=d", b"\x00raw")
        names = {name.lower(): value for name, value in head["headers"]}
        assert names["x-own"] == "yes"
        assert not {"cookie", "authorization", "x-forwarded-for", "host"} & set(names)
        answer(socket, head["id"], 503, b"<html>", retryAfter="7", headers=[["Set-Cookie", "a=b"]])
        response = posting.answer()
        assert (response.status_code, response.content) == (503, b"<html>")
        assert response.headers["retry-after"] == "7"
        assert response.headers["content-type"] == "application/json"
        assert "set-cookie" not in response.headers


def test_request_waits_for_a_receiver_that_connects_late(hub: RunningHub) -> None:
    token = create_token(hub, create_user(hub, "ada"))
    with api(hub, token) as ada:
        tunnel = open_tunnel(ada)
    posting = Posting(f"{tunnel['url']}webhooks/train", content=b"{}")
    with socket_to(hub, tunnel["id"], token) as socket:
        answer(socket, read_request(socket)[0]["id"], 200, b"7")
        assert posting.answer().json() == 7


@pytest.mark.one_engine
def test_answer_to_another_tunnels_request_is_ignored(hub: RunningHub) -> None:
    token = create_token(hub, create_user(hub, "ada"))
    stranger_token = create_token(hub, create_user(hub, "eve"))
    with api(hub, token) as ada, api(hub, stranger_token) as eve:
        own, strange = open_tunnel(ada), open_tunnel(eve)
    with socket_to(hub, own["id"], token) as socket, socket_to(hub, strange["id"], stranger_token) as eves:
        posting = Posting(f"{own['url']}webhooks/train", content=b"{}")
        head, _ = read_request(socket)
        answer(eves, head["id"], 200, b'"forged"')
        # Answered in order, so the forged answer has been processed.
        second = Posting(f"{strange['url']}webhooks/train", content=b"{}")
        answer(eves, read_request(eves)[0]["id"], 200, b'"own"')
        assert second.answer().json() == "own"
        answer(socket, head["id"], 200, b'"genuine"')
        assert posting.answer().json() == "genuine"


@pytest.mark.one_engine
def test_malformed_message_ends_the_connection(hub: RunningHub) -> None:
    token = create_token(hub, create_user(hub, "ada"))
    with api(hub, token) as ada:
        tunnel = open_tunnel(ada)
    for message in (b"no json\n", b'{"id": "x", "status": 99}\n', b'{"id": "x", "status": 200}\n' + b"x" * 70_000):
        with socket_to(hub, tunnel["id"], token) as socket:
            socket.send(message)
            assert close_code(socket) == 4400


def test_new_connection_replaces_the_old_one(hub: RunningHub) -> None:
    token = create_token(hub, create_user(hub, "ada"))
    with api(hub, token) as ada:
        tunnel = open_tunnel(ada)
    with socket_to(hub, tunnel["id"], token) as first, socket_to(hub, tunnel["id"], token) as second:
        assert close_code(first) == 4000
        posting = Posting(f"{tunnel['url']}webhooks/train", content=b"{}")
        answer(second, read_request(second)[0]["id"], 204, b"")
        assert posting.answer().status_code == 204


@pytest.mark.limits(permission_check_seconds=0.1)
def test_revoked_token_ends_the_connection(hub: RunningHub) -> None:
    user = create_user(hub, "ada")
    token, other = create_token(hub, user, name="tunnel"), create_token(hub, user, name="other")
    with api(hub, other) as ada:
        tunnel = open_tunnel(ada)
        with socket_to(hub, tunnel["id"], token) as socket:
            (found,) = [one for one in ada.get("/api/settings/tokens").json() if one["name"] == "tunnel"]
            assert ada.delete(f"/api/settings/tokens/{found['id']}").status_code == 204
            assert close_code(socket) == 4401
    assert refused_status(hub, tunnel["id"], token) == 401


@pytest.mark.one_engine
def test_opening_needs_the_webhooks_permission(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    token = create_token(hub, create_user(hub, "ada"), "read")
    with api(hub) as anyone, api(hub, token) as reader:
        assert anyone.post("/api/tunnels").status_code == 401
        assert reader.post("/api/tunnels").status_code == 403
    with pytest.raises(Forbidden, match="change webhooks"), share_receiver(monkeypatch, hub.url, token):
        pass
    assert capsys.readouterr().out == "", "it does not start"


@pytest.mark.one_engine
def test_closed_link_is_not_found(hub: RunningHub) -> None:
    token = create_token(hub, create_user(hub, "ada"))
    with api(hub, token) as ada:
        tunnel = open_tunnel(ada)
        shown = ada.get(f"/api/tunnels/{tunnel['id']}")
        assert (shown.status_code, shown.json()) == (200, tunnel)
        with socket_to(hub, tunnel["id"], token) as socket:
            assert ada.delete(f"/api/tunnels/{tunnel['id']}").status_code == 204
            assert close_code(socket) == 4404
        assert ada.delete(f"/api/tunnels/{tunnel['id']}").status_code == 404
    assert httpx.get(tunnel["url"]).status_code == 404


def test_oldest_link_of_a_user_is_removed_beyond_the_limit(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        opened = []
        for _ in range(11):
            hub.clock.advance(1)
            opened.append(open_tunnel(ada))
    found = [httpx.get(tunnel["url"]).status_code for tunnel in opened]
    assert found == [404, *[200] * 10]


@pytest.mark.one_engine
def test_large_bodies_and_floods_are_rejected(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        tunnel = open_tunnel(ada)
        assert ada.post(f"/tunnel/{tunnel['id']}/webhooks/x", content=b"x" * (1024 * 1024 + 1)).status_code == 413
        for _ in range(59):
            open_tunnel(ada)
        assert ada.post("/api/tunnels").status_code == 429


def test_expired_links_are_deleted(hub: RunningHub) -> None:
    from hubgate.server.worker.sweep import Sweep

    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        open_tunnel(ada)
    hub.clock.advance(72 * HOUR // SECOND)
    hub.call(lambda opened: Sweep(opened.db, opened.clock).step())

    async def count(opened: Any) -> int:
        row = await opened.db.one("SELECT count(*) AS n FROM tunnels")
        return int(row["n"])

    assert hub.call(count) == 0


@pytest.mark.one_engine
def test_operator_can_switch_tunnels_off(engine: Engine, tmp_path: Path) -> None:
    url = engine.fresh_url()
    with run_hub(settings_for(url, tmp_path)) as on:
        token = create_token(on, create_user(on, "ada"))
        with api(on, token) as ada:
            tunnel_id = open_tunnel(ada)["id"]
    with run_hub(settings_for(url, tmp_path, tunnel="off")) as off, api(off, token) as ada:
        refused = ada.post("/api/tunnels")
        assert (refused.status_code, refused.json()["error"]) == (
            403,
            "The operator of this hub has switched temporary links off.",
        )
        assert ada.get(f"/tunnel/{tunnel_id}/").status_code == 404
        assert ada.post(f"/tunnel/{tunnel_id}/webhooks/x", json={}).status_code == 404
        assert refused_status(off, tunnel_id, token) == 404


def test_receiver_connects_again_after_the_connection_is_lost(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    token = create_token(hub, create_user(hub, "ada"))
    caplog.set_level(logging.WARNING, "hubgate.receiver")
    delivery = signed_delivery("repo.content.update", secret=SECRET)
    with share_receiver(monkeypatch, hub.url, token) as shared:
        posted = httpx.post(f"{shared.link}webhooks/train", headers=delivery.headers, content=delivery.body)
        assert posted.status_code == 200

        async def drop(opened: Any) -> None:
            for socket in opened.tunnels.sockets._sockets.values():
                socket.close(4408)

        hub.call(drop)
        until(lambda: "connected again" in caplog.text)
        again = signed_delivery("repo.content.update", secret=SECRET)
        posted = httpx.post(f"{shared.link}webhooks/train", headers=again.headers, content=again.body, timeout=60)
        assert posted.status_code == 200
    assert len(shared.payloads) == 2


@pytest.mark.one_engine
def test_receiver_gets_unusual_requests_of_strangers(hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers outside of ASCII, compressed answers on request, and an address that a client would normalize."""
    token = create_token(hub, create_user(hub, "ada"))
    with (
        share_receiver(monkeypatch, hub.url, token) as shared,
        LeanClient(base_url=shared.link, timeout=60) as anyone,
    ):
        delivery = signed_delivery("repo.content.update", secret=SECRET)
        odd = {**delivery.headers, "X-Name": "\u00e9\u00ff", "Accept-Encoding": "gzip"}
        headers = [(name.encode(), value.encode("latin-1")) for name, value in odd.items()]
        accepted = anyone.post("webhooks/raw?q=%22%C3%A9[]", headers=headers, content=delivery.body)
        assert accepted.status_code == 200
        ((received, body),) = shared.requests
        assert body == delivery.body
        assert {name.lower(): value for name, value in received.items()}["x-name"] == "\u00e9\u00ff"


@pytest.mark.one_engine
def test_links_with_a_host_of_their_own_serve_nothing_else(engine: Engine, tmp_path: Path) -> None:
    settings = settings_for(engine.fresh_url(), tmp_path, tunnel_host="tunnels.example.org")
    with run_hub(settings) as own, api(own, token := create_token(own, create_user(own, "ada"))) as ada:
        tunnel = open_tunnel(ada)
        host = f"{tunnel['id']}.tunnels.example.org"
        assert tunnel["url"] == f"http://{host}/"
        webhook = create_webhook(ada, f"http://{host}/webhooks/x", "user:ada")
        with socket_to(own, tunnel["id"], token) as socket:
            posting = Posting(f"{own.url}/webhooks/x?y", headers={"Host": f"{host.upper()}:80"}, content=b"{}")
            head, _ = read_request(socket)
            assert head["path"] == "/webhooks/x?y"
            answer(socket, head["id"], 200, b'"ok"')
            assert posting.answer().json() == "ok"
            for path in ("/", "/login", "/api/whoami-v2", "/webhooks/x", "/static/x/site.css"):
                page = ada.get(path, headers={"Host": host})
                assert (page.status_code, "temporary link" in page.text) == (200, True), path
            for path in ("/login", "/api/tunnels", "/oauth/token"):
                assert ada.post(path, headers={"Host": host}).status_code == 404, path
            create_repo(ada, "corpus")
            with deliver_in_background(own):
                answer(socket, read_request(socket)[0]["id"], 200)
                until(lambda: [one["state"] for one in logs(ada, webhook)] == ["delivered"])
        # The hub has no pages at these names, and no links at its own.
        for other in ("tunnels.example.org", "x.tunnels.example.org", f"x.{host}"):
            assert ada.get("/login", headers={"Host": other}).status_code == 404
        assert ada.get("/login", headers={"Host": "tunnels.example.org.example.com"}).status_code == 200
        assert ada.get(f"/tunnel/{tunnel['id']}/").status_code == 404
