"""The outermost ASGI layer: every request passes it, whatever becomes of it.

    route matched -> head checked -> body bounded -> caller found -> CSRF (pages' POSTs)
        -> endpoint: resource found, action judged on it, handler
                a refusal anywhere is rendered for the surface it happens on

It stamps the request id, adds the standard headers, counts, and writes one line to the log. The handler of a client
that went away runs to its end, since it may be half of something, unless it only reads (`http/client.py`).
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from hubgate.server.edge.exchange import Exchange
from hubgate.server.edge.routes import Route
from hubgate.server.edge.table import Found, RouteTable
from hubgate.server.errors import BadRequest, HubError, NotFound, Unavailable
from hubgate.server.http import client
from hubgate.server.http.csrf import FIELD, Csrf
from hubgate.server.http.headers import StandardHeaders, preflight
from hubgate.server.http.intake import BoundedBody, check_head
from hubgate.server.http.peer import Networks, client_address
from hubgate.server.http.render import ErrorRenderer
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import ErrorShape, Surface, surface_of
from hubgate.server.jobs.caller import ClientLeft
from hubgate.server.logs import request_id_of_context, summary_of
from hubgate.server.metrics import Metrics

# Finds out who is asking; refuses a credential that is not good.
Guard = Callable[[HubRequest, Route | None], Awaitable[None]]

log = logging.getLogger("hubgate.http")

# The shapes of errors of surfaces that an address is on by its beginning.
_PROGRAMS = (ErrorShape.API, ErrorShape.OAUTH)

# Logged and counted for a request whose client left before it was answered; never sent.
CLIENT_LEFT = 499

NOTHING_HERE = "Nothing here, or not for you. Another account may see more."


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
        if scope["type"] != "http":
            # Resources are opened and closed around the server (worker/web.py), and no route speaks WebSocket yet.
            raise RuntimeError(f"nothing here speaks {scope['type']}")
        exchange = Exchange(scope, send, surface_of(scope["raw_path"]), self.headers)
        request = HubRequest(scope, receive)
        request.request_id = exchange.request_id
        request.client_ip = client_address(scope, self.trusted_proxies)
        token, entered = request_id_of_context.set(request.request_id), client.enter(request)
        try:
            await self._answer(request, exchange)
        finally:
            client.leave(request, entered)
            exchange.record(self.metrics, request.client_ip)
            request_id_of_context.reset(token)

    async def _answer(self, request: HubRequest, exchange: Exchange) -> None:
        try:
            asked_first = request.method == "OPTIONS"
            response = self._preflight(request, exchange) if asked_first else await self._handled(request, exchange)
            await response(request.scope, exchange.body.gone if exchange.body else request.receive, exchange.send)
        except ClientLeft:
            exchange.status = exchange.status or CLIENT_LEFT
        except ClientDisconnect:
            if not exchange.status:
                # Gone, or its chunks are malformed; in the second case somebody reads the answer.
                await self._refuse(request, exchange, BadRequest("The body ended early or is malformed."))
        except HubError as error:
            _report(error, begun=exchange.status != 0)
            await self._refuse(request, exchange, error)
        except asyncio.CancelledError:
            if not exchange.status:
                await self._refuse(request, exchange, Unavailable("The hub is restarting. Try again shortly."))
            raise
        except Exception:
            log.exception("unexpected error")
            await self._refuse(request, exchange, HubError("Something broke here. It is logged under this id."))

    async def _handled(self, request: HubRequest, exchange: Exchange) -> ASGIApp:
        found = self._found(request, exchange)
        check_head(request.scope)
        if found is None:
            if exchange.surface is Surface.PAGE:
                await self.guard(request, None)
            raise NotFound(NOTHING_HERE)
        route, request.scope["path_params"] = found.route, found.params
        exchange.body = BoundedBody(request.receive, request.scope, route.body_cap, route.body_seconds)
        request.bound_body(exchange.body)
        exchange.body.refuse_announced()
        await self.guard(request, route)
        if route.surface is Surface.PAGE and route.method == "POST" and route.csrf:
            request.form_fields = await request.read_form()
            self.csrf.check(request, request.form_fields.get(FIELD))
        return await route.endpoint(request)

    def _found(self, request: HubRequest, exchange: Exchange) -> Found | None:
        found = self.table.find(request.method, request.scope["raw_path"])
        if found is None:
            return None
        nearest = found.nearest
        if nearest.surface is Surface.PAGE and exchange.surface.value.errors in _PROGRAMS:
            # /{namespace}/{repo} fits nearly every address; one that is for programs is no repo's page.
            return None
        # Known before anything is refused, so that every refusal has the shape of its surface.
        exchange.route = nearest
        request.secret_address = nearest.secret_address
        return found

    def _preflight(self, request: HubRequest, exchange: Exchange) -> Response:
        """An unknown address of an open surface passes: the call itself then says 404, where the app can read it."""
        found = self._found(request, exchange)
        check_head(request.scope)
        if found is None and not exchange.surface.value.cors:
            raise NotFound(NOTHING_HERE)
        open_routes = [route for route in found.routes if route.surface.value.cors] if found else []
        if open_routes:
            exchange.route = open_routes[0]
        allowed = sorted(route.method for route in open_routes) if found else ["DELETE", "GET", "PATCH", "POST", "PUT"]
        headers = {"allow": ", ".join(found.methods)} if found else {}
        return Response(status_code=204, headers=headers | (preflight(allowed) if allowed else {}))

    async def _refuse(self, request: HubRequest, exchange: Exchange, error: HubError) -> None:
        if exchange.status:
            # The answer has begun: cutting it off is the only honest end.
            exchange.cut = True
            raise error
        response = self.errors.response(request, exchange.surface, error)
        with contextlib.suppress(ClientDisconnect):
            await response(request.scope, request.receive, exchange.send)


def _report(error: HubError, *, begun: bool) -> None:
    """Refusals are the caller's business; what is ours goes to the log, with its cause."""
    if isinstance(error, Unavailable) and not begun:
        # Expected while the database is away, once per request: a line, not a traceback.
        log.warning("refused with 503: %s", summary_of(error.__cause__ or error))
    elif error.status >= 500 or begun:
        log.warning("refused with %d", error.status, exc_info=error)
