"""The outermost ASGI layer, which every request passes through.

    match route -> check headers -> limit and read body -> find caller -> CSRF (POSTs of pages)
        -> endpoint: find resource, check permission, call handler
                an error at any step is rendered for the surface of the route

The edge also sets the request id, adds the standard headers, updates metrics and logs one line per request. When the
client disconnects, the jobs of a read-only request stop (`jobs/caller.py`); any other handler runs to completion,
because stopping could leave a change half done.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from msgspec import Struct

from hubgate.server.edge.exchange import Exchange, request_id_of
from hubgate.server.edge.routes import Route
from hubgate.server.edge.table import RouteMatch, RouteTable
from hubgate.server.egress.tunnel_links import PREFIX, TunnelLinks
from hubgate.server.errors import BadGateway, BadRequest, GatewayTimeout, HubError, NotFound, Unavailable
from hubgate.server.http.asgi import ASGIApp, ClientDisconnect, Message, Receive, RequestHeaders, Scope, Send
from hubgate.server.http.client_address import Networks, client_address
from hubgate.server.http.csrf import CSRF_FIELD, Csrf
from hubgate.server.http.headers import ALLOWED_HEADERS, StandardHeaders, preflight
from hubgate.server.http.intake import BoundedBody, check_head
from hubgate.server.http.render import ErrorRenderer
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import ErrorShape, Surface
from hubgate.server.jobs.caller import ClientLeft, JobCaller, current_job_caller
from hubgate.server.logs import current_request_id, summary_of
from hubgate.server.metrics import Metrics

# Finds the caller; rejects an invalid credential.
Authenticate = Callable[[HubRequest, Route | None], Awaitable[None]]

log = logging.getLogger("hubgate.http")

# Error shapes of the surfaces for programs, which are recognized by the prefix of the address.
_PROGRAM_SHAPES = (ErrorShape.API, ErrorShape.OAUTH)

_READ_ONLY = frozenset({"GET", "HEAD"})

# The status logged and counted for a request whose client disconnected before the response; never sent.
CLIENT_LEFT = 499

NOTHING_HERE = "Nothing here, or you don't have access. Another account may see more."


class Edge(Struct, frozen=True):
    table: RouteTable
    guard: Authenticate
    csrf: Csrf
    errors: ErrorRenderer
    headers: StandardHeaders
    trusted_proxies: Networks
    metrics: Metrics
    tunnel_links: TunnelLinks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        websocket = None
        if scope["type"] == "websocket":
            # Opened with a GET, which passes the same checks as any other. It has no body.
            websocket = scope, receive
            scope, receive = {**scope, "type": "http", "method": "GET"}, _receive_nothing
        elif scope["type"] != "http":
            # Resources are opened and closed around the server (worker/web.py).
            raise RuntimeError(f"unsupported protocol: {scope['type']}")
        headers = RequestHeaders(scope["headers"])
        if self.tunnel_links.has_own_host:
            self._map_tunnel_host(scope, headers)
        request_id, client_ip = request_id_of(headers), client_address(scope, self.trusted_proxies)
        # Jobs are charged to the client's address until the guard finds the user.
        job_caller = JobCaller(client_ip, may_abandon=scope["method"] in _READ_ONLY)
        request = HubRequest(scope, receive, headers, request_id, client_ip, job_caller)
        exchange = Exchange(scope, headers, send, request_id, self.headers, websocket)
        id_token, caller_token = current_request_id.set(request_id), current_job_caller.set(job_caller)
        try:
            await self._respond(request, exchange)
        finally:
            job_caller.close()
            if request.bounded_body is not None:
                request.bounded_body.close()
            exchange.record(self.metrics, client_ip)
            current_job_caller.reset(caller_token)
            current_request_id.reset(id_token)

    async def _respond(self, request: HubRequest, exchange: Exchange) -> None:
        try:
            is_preflight = request.method == "OPTIONS"
            response = self._preflight(request, exchange) if is_preflight else await self._dispatch(request, exchange)
            await self._send(response, request, exchange)
        except ClientLeft:
            exchange.status = exchange.status or CLIENT_LEFT
        except ClientDisconnect:
            if not exchange.status:
                # The client disconnected or sent malformed chunks; in the second case it can read the response.
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
            failure = HubError("Something went wrong. The error is logged under the request id.")
            await self._refuse(request, exchange, failure)

    async def _send(self, response: ASGIApp, request: HubRequest, exchange: Exchange) -> None:
        if isinstance(response, Response):
            await exchange.answer(response)
            return
        receive = exchange.body.disconnected if exchange.body else request.receive
        scope, receive = exchange.websocket or (request.scope, receive)
        await response(scope, receive, exchange.send)

    async def _dispatch(self, request: HubRequest, exchange: Exchange) -> ASGIApp:
        found = self._match(request, exchange)
        check_head(request.scope, request.headers)
        if found is None:
            if exchange.surface is Surface.PAGE:
                await self.guard(request, None)
            raise NotFound(NOTHING_HERE)
        route, request.path_params = found.route, found.params
        if exchange.websocket and not route.websocket:
            raise BadRequest("This address does not accept a WebSocket.")
        exchange.body = BoundedBody(request.receive, request.headers, route.body_cap, route.body_seconds)
        request.read_body_through(exchange.body)
        exchange.body.check_declared_length()
        if not route.streams and not exchange.body.complete and _presents_credential(request):
            # Permissions are checked once the whole body is received: a client that delays its last byte must not
            # retain permissions it has since lost (attack O44). Anonymous requests are checked before the body is read.
            await request.body()
        await self.guard(request, route)
        needs_csrf = route.surface is Surface.PAGE and route.method == "POST" and route.csrf
        if needs_csrf and not route.is_by_token(request):
            request.form_fields = await (request.read_form_with_files() if route.has_files else request.read_form())
            self.csrf.check(request, request.form_fields.get(CSRF_FIELD))
        return await route.endpoint(request)

    def _match(self, request: HubRequest, exchange: Exchange) -> RouteMatch | None:
        found = self.table.find(request.method, request.scope["raw_path"])
        if found is None:
            return None
        nearest = found.nearest
        if nearest.surface is Surface.PAGE and exchange.surface_by_prefix.rules.errors in _PROGRAM_SHAPES:
            # /{namespace}/{repo} matches nearly every address; an address for programs is not a repo's page.
            return None
        # Set before any check fails, so that every error has the shape of its surface.
        exchange.route = nearest
        request.secret_address = nearest.secret_address
        return found

    def _preflight(self, request: HubRequest, exchange: Exchange) -> Response:
        """Answer a CORS preflight. An unknown address on a CORS surface passes, so that the app can read the 404 of the
        request itself."""
        found = self._match(request, exchange)
        check_head(request.scope, request.headers)
        if found is None and not exchange.surface.rules.cors:
            raise NotFound(NOTHING_HERE)
        open_routes = [route for route in found.routes if route.surface.rules.cors] if found else []
        request_headers = ALLOWED_HEADERS
        if open_routes:
            exchange.route = open_routes[0]
            request_headers = open_routes[0].request_headers
        allowed = sorted(route.method for route in open_routes) if found else ["DELETE", "GET", "PATCH", "POST", "PUT"]
        headers = {"allow": ", ".join(found.methods)} if found else {}
        return Response(status_code=204, headers=headers | (preflight(allowed, request_headers) if allowed else {}))

    async def _refuse(self, request: HubRequest, exchange: Exchange, error: HubError) -> None:
        if exchange.status:
            # The response has started: the only way to signal the error is to cut it off.
            exchange.cut = True
            raise error
        response = self.errors.response(request, exchange.surface, error)
        with contextlib.suppress(ClientDisconnect):
            await exchange.answer(response)

    def _map_tunnel_host(self, scope: Scope, headers: RequestHeaders) -> None:
        """Map a request to the host of a temporary link to the link's path. Such a host serves nothing else."""
        tunnel_id = self.tunnel_links.id_of_host(headers.get("host", ""))
        if tunnel_id is not None:
            scope["tunnel_host"] = True
            prefix = PREFIX + (quote(tunnel_id, safe="") or "-")
            scope["raw_path"] = prefix.encode() + scope["raw_path"]
            scope["path"] = prefix + scope["path"]


async def _receive_nothing() -> Message:
    """The body of a request that opens a WebSocket: jobs must not read the messages that follow."""
    never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    return await never


def _presents_credential(request: HubRequest) -> bool:
    return b"authorization" in request.headers.first or b"cookie" in request.headers.first


def _report(error: HubError, *, begun: bool) -> None:
    """Log a server error, or any error after the response has started, with its cause."""
    if isinstance(error, (BadGateway, GatewayTimeout)) and begun:
        # Expected when a service behind the gateway dies or hangs.
        log.warning("cut off with %d: %s", error.status, summary_of(error.__cause__ or error))
    elif isinstance(error, (Unavailable, BadGateway, GatewayTimeout)) and not begun:
        # Expected for every request while the database or a service is down: a line, not a traceback.
        log.warning("refused with %d: %s", error.status, summary_of(error.__cause__ or error))
    elif error.status >= 500 or begun:
        log.warning("refused with %d", error.status, exc_info=error)
