"""Sends deliveries to a receiver in the same process, on an event loop with the app's lifespan, as a server does."""

import asyncio
import json
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

from hubgate.receiver.asgi import App, Message, Scope
from hubgate.receiver.endpoint import shared_app
from hubgate.receiver.server import WebhooksServer
from hubgate.receiver.testing.signing import Key, SignedDelivery, signed_delivery

T = TypeVar("T")
TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Deliverer:
    """Sends deliveries to an app: `with Deliverer(app) as deliver: deliver("repo.create")`.

    app: a WebhooksServer, or an ASGI app that mounts one. Default: the shared receiver of `@webhook_endpoint`.
    to: the address. Default: the only registered address.
    secret, key: sign deliveries with these. Default: the secret of the WebhooksServer.
    """

    def __init__(
        self, app: App | None = None, *, to: str | None = None, secret: str | None = None, key: Key | None = None
    ) -> None:
        self._app: App = app or shared_app()
        self._to, self._secret, self._key = to, secret, key
        if secret is None and key is None and isinstance(self._app, WebhooksServer):
            self._secret = next(iter(self._app.secrets), None)

    def __enter__(self) -> "Deliverer":
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._lifespan = _Lifespan(self._app)
        try:
            self._run(self._lifespan.start())
        except BaseException:
            self._stop_loop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._run(self._lifespan.stop())
        finally:
            self._stop_loop()

    def _stop_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT_SECONDS)
        self._loop.close()
        if isinstance(self._app, WebhooksServer):
            self._app.close()

    def __call__(
        self, content: str | dict[str, Any] | SignedDelivery, *, to: str | None = None, **more: Any
    ) -> Response:
        """Send a delivery: a kind, a payload, or a signed delivery. `more` is passed to `signed_delivery`."""
        delivery = content if isinstance(content, SignedDelivery) else self.signed_delivery(content, **more)
        return self.post(to or self._address(), delivery.headers, delivery.body)

    def signed_delivery(self, content: str | dict[str, Any], **more: Any) -> SignedDelivery:
        return signed_delivery(content, **{"secret": self._secret, "key": self._key, **more})

    def post(self, path: str, headers: dict[str, str], body: bytes) -> Response:
        """Send a POST with any headers and body, unchanged."""
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        return self.raw("POST", path, raw, body)

    def get(self, path: str = "/") -> Response:
        return self.raw("GET", path, [(b"host", b"127.0.0.1")], b"")

    def raw(self, method: str, path: str, headers: list[tuple[bytes, bytes]], body: bytes) -> Response:
        lowered = [(name.lower(), value) for name, value in headers]
        return self._run(_request(self._app, method, path, lowered, body))

    def settle(self) -> None:
        """With `ack="before"`: wait until no delivery is running or due."""
        if isinstance(self._app, WebhooksServer):
            self._run(self._app.settle())

    def _address(self) -> str:
        if self._to is not None:
            return self._to
        known = list(self._app.addresses) if isinstance(self._app, WebhooksServer) else []
        if len(known) != 1:
            raise ValueError(f"Pass to= to choose an address{': ' + ', '.join(known) if known else ''}.")
        return known[0]

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT_SECONDS)


class _Lifespan:
    """Runs the app's lifespan, if the app has one."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def start(self) -> None:
        self._incoming: asyncio.Queue[Message] = asyncio.Queue()
        self._outgoing: asyncio.Queue[Message] = asyncio.Queue()
        scope: Scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": {}}
        self._task = asyncio.create_task(_run_lifespan(self._app, scope, self._incoming, self._outgoing))
        await self._notify("lifespan.startup")

    async def stop(self) -> None:
        await self._notify("lifespan.shutdown")
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _notify(self, kind: str) -> None:
        if self._task.done():
            return
        self._incoming.put_nowait({"type": kind})
        response = asyncio.create_task(self._outgoing.get())
        await asyncio.wait((response, self._task), return_when=asyncio.FIRST_COMPLETED)
        if response.done() and response.result()["type"].endswith(".failed"):
            raise RuntimeError(response.result().get("message", "The app did not start."))
        response.cancel()


async def _run_lifespan(
    app: App, scope: Scope, incoming: "asyncio.Queue[Message]", outgoing: "asyncio.Queue[Message]"
) -> None:
    """Run the lifespan. An app without lifespan support may raise, and is served anyway."""
    try:
        await app(scope, incoming.get, outgoing.put)
    except Exception:
        if not incoming.empty():
            return
        raise


async def _request(app: App, method: str, path: str, headers: list[tuple[bytes, bytes]], body: bytes) -> Response:
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode("utf-8", "surrogatepass"),
        "root_path": "",
        "query_string": b"",
        "headers": [*headers, (b"content-length", str(len(body)).encode())],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 80),
    }
    incoming: asyncio.Queue[Message] = asyncio.Queue()
    incoming.put_nowait({"type": "http.request", "body": body, "more_body": False})
    outgoing: list[Message] = []

    async def send(message: Message) -> None:
        outgoing.append(message)

    await app(scope, incoming.get, send)
    start = next(message for message in outgoing if message["type"] == "http.response.start")
    content = b"".join(message.get("body", b"") for message in outgoing if message["type"] == "http.response.body")
    shown = {name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]}
    return Response(start["status"], shown, content)
