"""The state of one request in the edge: route, status, response headers, metrics and log line."""

import logging
import re
import secrets
import time

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from hubgate.server.clock import iso, system_clock
from hubgate.server.edge.routes import Route
from hubgate.server.http.headers import HeaderPolicy, StandardHeaders
from hubgate.server.http.intake import BoundedBody
from hubgate.server.http.surface import Surface
from hubgate.server.logs import RequestLine, log_request
from hubgate.server.metrics import Metrics

log = logging.getLogger("hubgate.http")

NO_ROUTE = "(no route)"
# The status of a request that opened a WebSocket.
SWITCHED = 101
# Callers may invent methods; each would add a series to the metrics.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# An existing client sends its own id in X-Amzn-Trace-Id and expects it in the response.
_GIVEN_ID = re.compile(rb"[A-Za-z0-9_-]{8,64}\Z")


class Exchange:
    """An HTTP exchange: one request and its response. Unrelated to token exchange."""

    def __init__(
        self,
        scope: Scope,
        send: Send,
        surface: Surface,
        headers: StandardHeaders,
        websocket: tuple[Scope, Receive] | None = None,
    ) -> None:
        self.route: Route | None = None
        # The scope and messages of a WebSocket, if the request opens one.
        self.websocket = websocket
        self.request_id = _request_id(scope)
        self.status = 0
        self.cut = False
        self.body: BoundedBody | None = None
        self._surface_by_prefix = surface
        self._headers = headers
        self._send = send
        self._is_head = scope["method"] == "HEAD"
        self._method = scope["method"] if scope["method"] in _METHODS else "other"
        self._started = time.perf_counter()
        # The time until a WebSocket was open, which is recorded instead of its duration: it may stay open for days.
        self._seconds: float | None = None

    @property
    def surface(self) -> Surface:
        return self.route.surface if self.route else self._surface_by_prefix

    @property
    def _header_policy(self) -> HeaderPolicy:
        return self.route.header_policy if self.route else HeaderPolicy(self._surface_by_prefix)

    async def send(self, message: Message) -> None:
        if message["type"] == "websocket.accept":
            self.status = SWITCHED
            self._seconds = time.perf_counter() - self._started
        elif message["type"] in ("http.response.start", "websocket.http.response.start"):
            self.status = message["status"]
            message["headers"] = self._headers.add(
                self._header_policy, self.request_id, list(message.get("headers", ()))
            )
            if self.body is not None and not self.body.complete:
                # Answered before the body was read: without this header the server may read an unlimited body.
                message["headers"].append((b"connection", b"close"))
        elif self._is_head and message["type"] == "http.response.body":
            await self._send({"type": "http.response.body", "body": b""})
            # Stop here: the body of a large response need not be produced.
            raise ClientDisconnect
        await self._send(message)

    def record(self, metrics: Metrics, client_ip: str) -> None:
        seconds = time.perf_counter() - self._started if self._seconds is None else self._seconds
        route = self.route.path if self.route else NO_ROUTE
        metrics.request(route, self._method, self.status, seconds)
        moment = iso(system_clock())
        milliseconds = round(seconds * 1000, 1)
        log_request(
            log,
            RequestLine(moment, self.request_id, self._method, route, self.status, milliseconds, client_ip, self.cut),
        )


def _request_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name in (b"x-request-id", b"x-amzn-trace-id") and _GIVEN_ID.match(value):
            given: str = value.decode()
            return given
    return secrets.token_hex(16)
