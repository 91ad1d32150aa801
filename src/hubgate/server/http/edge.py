"""The outermost ASGI layer: every request passes it, whatever becomes of it.

    route matched -> head checked -> body bounded -> guard -> CSRF (pages' POSTs) -> handler
                a refusal anywhere is rendered for the surface it happens on

It stamps the request id, adds the standard headers, counts, and writes one line to the log. The handler of a client
that went away runs to its end: what it was doing may be half of something.
"""

import logging
import re
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hubgate.server.errors import HubError
from hubgate.server.http.csrf import FIELD, Csrf
from hubgate.server.http.headers import StandardHeaders, preflight
from hubgate.server.http.intake import BoundedBody, check_head
from hubgate.server.http.peer import Networks, client_address
from hubgate.server.http.render import ErrorRenderer
from hubgate.server.http.request import HubRequest
from hubgate.server.http.routes import Route, RouteTable
from hubgate.server.http.surface import Surface, surface_of
from hubgate.server.logs import request_id_of_context
from hubgate.server.metrics import Metrics

# Decides who is asking and whether they may; raises the refusal.
Guard = Callable[[HubRequest, Route], Awaitable[None]]

log = logging.getLogger("hubgate.http")

NO_ROUTE = "(no route)"
# A caller may invent methods; each would be a new series in the metrics.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# One existing client sends its own id in X-Amzn-Trace-Id and looks for it in our answers.
_GIVEN_ID = re.compile(rb"[A-Za-z0-9_-]{8,64}\Z")


@dataclass
class _Exchange:
    """What is known of one request so far; the log line is written from it."""

    surface: Surface
    route: str = NO_ROUTE
    status: int = 0


@dataclass(frozen=True)
class Edge:
    table: RouteTable
    guard: Guard
    csrf: Csrf
    errors: ErrorRenderer
    headers: StandardHeaders
    trusted_proxies: Networks
    metrics: Metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _acknowledge_lifespan(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        exchange = _Exchange(surface_of(scope["path"]))
        request = HubRequest(scope, receive)
        request.request_id = _request_id(scope)
        request.client_ip = client_address(scope, self.trusted_proxies)
        token = request_id_of_context.set(request.request_id)
        try:
            await self._answer(request, exchange, self._stamped(send, request, exchange))
        finally:
            self._record(request, exchange, time.perf_counter() - started)
            request_id_of_context.reset(token)

    async def _answer(self, request: HubRequest, exchange: _Exchange, send: Send) -> None:
        try:
            asked_first = request.method == "OPTIONS"
            response = self._preflight(request) if asked_first else await self._handled(request, exchange)
            await response(request.scope, request.receive, send)
        except ClientDisconnect:
            exchange.status = exchange.status or 499
        except HubError as error:
            await self._refuse(request, exchange, send, error)
        except Exception:
            log.exception("unexpected error")
            await self._refuse(request, exchange, send, HubError("Something broke here. It is logged under this id."))

    async def _handled(self, request: HubRequest, exchange: _Exchange) -> ASGIApp:
        match = self.table.match(request.method, request.scope["raw_path"])
        route = match.route
        exchange.surface, exchange.route = route.surface, route.path
        check_head(request.scope)
        request.scope["path_params"] = match.params
        request.bound_body(BoundedBody(request.receive, request.scope, route.body_cap, route.body_seconds))
        await self.guard(request, route)
        if route.surface is Surface.PAGE and route.method == "POST" and route.csrf:
            request.form_fields = await request.read_form()
            self.csrf.check(request, request.form_fields.get(FIELD))
        return await route.handler(request)

    def _preflight(self, request: HubRequest) -> Response:
        check_head(request.scope)
        methods = self.table.cors_methods(request.scope["raw_path"])
        return Response(status_code=204, headers=preflight(methods) if methods else None)

    async def _refuse(self, request: HubRequest, exchange: _Exchange, send: Send, error: HubError) -> None:
        if exchange.status:
            # The answer has begun: cutting it off is the only honest end.
            raise error
        response = self.errors.response(request, exchange.surface, error)
        await response(request.scope, request.receive, send)

    def _stamped(self, send: Send, request: HubRequest, exchange: _Exchange) -> Send:
        async def stamped(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                message["headers"] = self.headers.add(
                    exchange.surface, request.request_id, list(message.get("headers", ()))
                )
            elif request.method == "HEAD" and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        return stamped

    def _record(self, request: HubRequest, exchange: _Exchange, seconds: float) -> None:
        method = request.method if request.method in _METHODS else "other"
        self.metrics.request(exchange.route, method, exchange.status, seconds)
        log.info(
            "request",
            extra={
                "fields": {
                    "method": request.method,
                    "route": exchange.route,
                    "status": exchange.status,
                    "ms": round(seconds * 1000, 1),
                    "ip": request.client_ip,
                }
            },
        )


def _request_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name in (b"x-request-id", b"x-amzn-trace-id") and _GIVEN_ID.match(value):
            given: str = value.decode()
            return given
    return uuid.uuid4().hex


async def _acknowledge_lifespan(receive: Receive, send: Send) -> None:
    """Resources are opened and closed around the server (worker/web.py), so there is nothing to do here."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
