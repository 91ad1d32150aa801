"""The state of one request in the edge: route, status, response headers, metrics and log line."""

import re
import time

from hubgate.server.clock import iso, system_clock
from hubgate.server.edge.routes import Route
from hubgate.server.http.asgi import ClientDisconnect, Message, RawHeaders, Receive, RequestHeaders, Scope, Send
from hubgate.server.http.headers import StandardHeaders, policy_of
from hubgate.server.http.intake import BoundedBody, has_body
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface, surface_of
from hubgate.server.ids import new_request_id
from hubgate.server.logs import RequestLine, log_request
from hubgate.server.metrics import Metrics

NO_ROUTE = "(no route)"
# The status of a request that opened a WebSocket.
SWITCHED = 101
# Callers may invent methods; each would add a series to the metrics.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# An existing client sends its own id in X-Amzn-Trace-Id and expects it in the response.
_GIVEN_ID = re.compile(rb"[A-Za-z0-9_-]{8,64}\Z")
_ID_HEADERS = (b"x-request-id", b"x-amzn-trace-id")


class Exchange:
    """An HTTP exchange: one request and its response. Unrelated to token exchange."""

    __slots__ = (
        "_headers",
        "_raw_path",
        "_request_headers",
        "_seconds",
        "_send",
        "_started",
        "body",
        "cut",
        "method",
        "request_id",
        "route",
        "status",
        "websocket",
    )

    def __init__(
        self,
        scope: Scope,
        request_headers: RequestHeaders,
        send: Send,
        request_id: str,
        headers: StandardHeaders,
        websocket: tuple[Scope, Receive] | None = None,
    ) -> None:
        self.route: Route | None = None
        # The scope and messages of a WebSocket, if the request opens one.
        self.websocket = websocket
        self.request_id = request_id
        self.method: str = scope["method"]
        self.status = 0
        self.cut = False
        self.body: BoundedBody | None = None
        self._raw_path: bytes = scope["raw_path"]
        self._request_headers = request_headers
        self._headers = headers
        self._send = send
        self._started = time.perf_counter()
        # The time until a WebSocket was open, which is recorded instead of its duration: it may stay open for days.
        self._seconds: float | None = None

    @property
    def surface(self) -> Surface:
        return self.route.surface if self.route else self.surface_by_prefix

    @property
    def surface_by_prefix(self) -> Surface:
        return surface_of(self._raw_path)

    async def answer(self, response: Response) -> None:
        """Send a response that is in memory: its head and its body."""
        prefix = "http.response" if self.websocket is None else "websocket.http.response"
        # First: a header that cannot be encoded is an error that can still be answered.
        headers = self._with_standard_headers(response.raw_headers())
        self.status = response.status_code
        await self._send({"type": prefix + ".start", "status": self.status, "headers": headers})
        await self._send({"type": prefix + ".body", "body": b"" if self.method == "HEAD" else response.body})

    async def send(self, message: Message) -> None:
        """Send a message of a response that sends itself, in parts."""
        if message["type"] == "websocket.accept":
            self.status = SWITCHED
            self._seconds = time.perf_counter() - self._started
        elif message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = self._with_standard_headers(message.get("headers", ()))
        elif self.method == "HEAD" and message["type"] == "http.response.body":
            await self._send({"type": "http.response.body", "body": b""})
            # Stop here: the body of a large response need not be produced.
            raise ClientDisconnect
        if self.websocket is not None and message["type"].startswith("http."):
            message = {**message, "type": "websocket." + message["type"]}
        await self._send(message)

    def _with_standard_headers(self, given: RawHeaders) -> RawHeaders:
        policy = self.route.header_policy if self.route else policy_of(self.surface_by_prefix)
        headers = self._headers.add(policy, self.request_id, given)
        # A request that is rejected before its route is known has no body object.
        body_is_read = self.body.complete if self.body is not None else not has_body(self._request_headers)
        if not body_is_read:
            # Without this header the server may read the rest of the body, which is not limited.
            headers.append((b"connection", b"close"))
        return headers

    def record(self, metrics: Metrics, client_ip: str) -> None:
        seconds = time.perf_counter() - self._started if self._seconds is None else self._seconds
        route = self.route.path if self.route else NO_ROUTE
        method = self.method if self.method in _METHODS else "other"
        metrics.request(route, method, self.status, seconds)
        milliseconds = round(seconds * 1000, 1)
        moment = iso(system_clock())
        log_request(RequestLine(moment, self.request_id, method, route, self.status, milliseconds, client_ip, self.cut))


def request_id_of(headers: RequestHeaders) -> str:
    """The id that the client sent, or a new one."""
    if headers.first.keys().isdisjoint(_ID_HEADERS):
        return new_request_id()
    given = (value for name, value in headers.raw if name in _ID_HEADERS and _GIVEN_ID.match(value))
    return next((value.decode() for value in given), None) or new_request_id()
