"""Receivers in other apps: with and without lifespan, below a path, with a custom page."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.websockets import WebSocket
from tests.bed.blocking import run_blocking
from tests.bed.lean_http import LeanClient
from tests.bed.processes import until
from tests.bed.receiver_library import SECRET, post, serve_receiver

from hubgate.receiver import WebhookPayload, WebhooksServer
from hubgate.receiver.asgi import App
from hubgate.receiver.launch import Server, listen, url_of
from hubgate.receiver.testing import Deliverer, signed_delivery


@contextmanager
def served(app: App) -> Iterator[httpx.Client]:
    bound = listen("127.0.0.1", 0)
    running = Server(app, bound)
    running.run_in_thread()
    try:
        with LeanClient(base_url=url_of(bound), timeout=60) as client:
            yield client
    finally:
        running.stop()


def receiver(**more: Any) -> tuple[WebhooksServer, list[str]]:
    app = WebhooksServer(webhook_secret=SECRET, **more)
    ran: list[str] = []

    @app.add_webhook
    def heard(payload: WebhookPayload) -> str:
        ran.append(payload.repo.name)
        return payload.repo.name

    return app, ran


@pytest.mark.parametrize("mount", ["/", "/hooks", "/a/b"])
def test_receiver_mounted_below_a_path(mount: str) -> None:
    app, ran = receiver()
    with served(Starlette(routes=[Route("/mine", _mine), Mount(mount, app)])) as client:
        below = mount.rstrip("/")
        assert (
            post(client, f"{below}/webhooks/heard", signed_delivery("repo.create", secret=SECRET)).json() == "ada/tiny"
        )
        assert post(client, f"{below}/webhooks/heard", signed_delivery("repo.create", secret="x")).status_code == 403
        assert client.get("/mine").text == "mine"
        page = client.get(f"{below}/").text
        assert f"<code>{str(client.base_url).rstrip('/')}{below}/webhooks/heard</code>" in page
        assert f'href="{below}/landing.css"' in page
        assert client.get(f"{below}/landing.css").headers["content-type"].startswith("text/css")
    assert ran == ["ada/tiny"]


def test_receiver_behind_a_proxy_that_strips_its_prefix() -> None:
    """The app knows its external path, as FastAPI's `root_path` does."""
    app, ran = receiver()
    mounting = Starlette(routes=[Mount("/hooks", app)])

    async def told(scope: Any, receive: Any, send: Any) -> None:
        await mounting({**scope, "root_path": "/api"}, receive, send)

    with Deliverer(told, to="/hooks/webhooks/heard", secret=SECRET) as deliver:
        assert deliver("repo.create").json() == "ada/tiny"
        assert deliver("repo.create", to="/webhooks/heard").status == 404
        assert b"/api/hooks/webhooks/heard</code>" in deliver.get("/hooks/").body
    assert ran == ["ada/tiny"]


def test_mounted_inbox_with_lifespan(tmp_path: Path) -> None:
    """What waited from the time before is run without any request."""
    left, _ = receiver(ack="before", inbox=tmp_path / "inbox.db")
    _put_in(left)
    app, ran = receiver(ack="before", inbox=tmp_path / "inbox.db")
    with served(Starlette(routes=[Mount("/hooks", app)], lifespan=app.lifespan)) as client:
        until(lambda: ran == ["left/over"])
        assert post(client, "/hooks/webhooks/heard", signed_delivery("repo.create", secret=SECRET)).status_code == 202
        until(lambda: ran == ["left/over", "ada/tiny"])
    app.close()


def test_mounted_inbox_without_lifespan(tmp_path: Path) -> None:
    """The lifespan begins with the first request of any kind."""
    left, _ = receiver(ack="before", inbox=tmp_path / "inbox.db")
    _put_in(left)
    app, ran = receiver(ack="before", inbox=tmp_path / "inbox.db")
    with served(Starlette(routes=[Mount("/hooks", app)])) as client:
        assert ran == []
        client.get("/hooks/")
        until(lambda: ran == ["left/over"])
    app.close()


def test_each_request_may_use_its_own_event_loop(tmp_path: Path) -> None:
    """As test clients have it; a handler may then be cut short by the end of its loop."""
    app, ran = receiver(ack="before", inbox=tmp_path / "inbox.db")
    mounted = Starlette(routes=[Mount("/hooks", app)])
    for number in range(3):
        delivery = signed_delivery("repo.create", name=f"ada/{number}", secret=SECRET)
        with httpx.Client(transport=_InOneLoopEach(mounted), base_url="http://x") as client:
            assert post(client, "/hooks/webhooks/heard", delivery).status_code == 202
    with served(app):
        until(lambda: set(ran) >= {"ada/0", "ada/1", "ada/2"})
    app.close()


def test_ui_can_be_html() -> None:
    app, _ = receiver(ui="<h1>Mine</h1>")
    with serve_receiver(app) as client:
        page = client.get("/")
        assert (page.text, page.headers["content-type"]) == ("<h1>Mine</h1>", "text/html; charset=utf-8")
        assert client.get("/other").status_code == 404
        assert client.post("/").status_code == 405
        assert post(client, "/webhooks/heard", signed_delivery("repo.create", secret=SECRET)).status_code == 200


def test_ui_can_be_an_asgi_app(tmp_path: Path) -> None:
    """It gets all that is no delivery, and the server's starting and stopping."""
    life: list[str] = []

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        life.append("up")
        yield
        life.append("down")

    routes = [Route("/mine", _mine), WebSocketRoute("/talk", _talk)]
    app, ran = receiver(ui=Starlette(routes=routes, lifespan=lifespan), ack="before", inbox=tmp_path / "inbox.db")
    with serve_receiver(app) as client:
        assert life == ["up"]
        assert client.get("/mine").text == "mine"
        assert client.get("/webhooks/unknown").status_code == 404
        assert post(client, "/webhooks/heard", signed_delivery("repo.create", secret=SECRET)).status_code == 202
        until(lambda: ran == ["ada/tiny"])
    assert life == ["up", "down"]
    assert _talked(app) == ["websocket.accept", "websocket.send", "websocket.close"]
    app.close()


def test_ui_can_be_an_app_without_lifespan(tmp_path: Path) -> None:
    async def bare(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        await PlainTextResponse("bare")(scope, receive, send)

    app, ran = receiver(ui=bare, ack="before", inbox=tmp_path / "inbox.db")
    with serve_receiver(app) as client:
        assert client.get("/").text == "bare"
        post(client, "/webhooks/heard", signed_delivery("repo.create", secret=SECRET))
        until(lambda: ran == ["ada/tiny"])


def test_invalid_ui_is_rejected() -> None:
    with pytest.raises(TypeError, match="gradio Blocks"):
        WebhooksServer(ui=5, webhook_secret=SECRET)


def test_websockets_are_closed_without_a_ui() -> None:
    app, _ = receiver()
    assert _talked(app) == ["websocket.close"]


def test_samples_reach_a_mounted_receiver() -> None:
    app, ran = receiver()
    with Deliverer(Starlette(routes=[Mount("/x", app)]), to="/x/webhooks/heard", secret=SECRET) as deliver:
        assert deliver("repo.create").json() == "ada/tiny"
    assert ran == ["ada/tiny"]


async def _mine(_: Request) -> PlainTextResponse:
    return PlainTextResponse("mine")


async def _talk(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text("hello")
    await socket.close()


class _InOneLoopEach(httpx.BaseTransport):
    def __init__(self, app: App) -> None:
        self._app = app

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        body = request.read()
        return run_blocking(
            self._ask(httpx.Request(request.method, request.url, headers=request.headers, content=body))
        )

    async def _ask(self, request: httpx.Request) -> httpx.Response:
        answer = await httpx.ASGITransport(self._app).handle_async_request(request)
        return httpx.Response(answer.status_code, content=await answer.aread())


def _talked(app: App) -> list[str]:
    """What the app says to one who wants to talk."""
    said: list[str] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        said.append(message["type"])

    scope = {"type": "websocket", "path": "/talk", "root_path": "", "headers": [], "query_string": b""}
    run_blocking(_awaited(app, scope, receive, send))
    return said


async def _awaited(app: App, *given: Any) -> None:
    await app(*given)


def _put_in(app: WebhooksServer) -> None:
    inbox = app._intake.inbox
    assert inbox is not None
    body = b'{"event": {"action": "create", "scope": "repo"}, "repo": {"type": "model", "name": "left/over"}}'
    run_blocking(inbox.put("/webhooks/heard", "left", [], body))
    app.close()
