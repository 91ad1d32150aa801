"""`/api/tunnels`: temporary links to the caller's receivers. A WebSocket to a link's address carries its requests."""

import asyncio
import contextlib

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, actor_of
from hubgate.server.access.policy import decide
from hubgate.server.access.resource import Account
from hubgate.server.clock import iso
from hubgate.server.edge.guard import Guard
from hubgate.server.edge.routes import KIB, Route, own
from hubgate.server.errors import Forbidden, NotFound, Unauthorized
from hubgate.server.http.asgi import ASGIApp, Receive, Scope, Send
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.web.api.answers import NO_TOKEN
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.permissions.grants import grant_of
from hubgate.server.webhooks.tunnels.context import Tunnels
from hubgate.server.webhooks.tunnels.model import Tunnel
from hubgate.server.webhooks.tunnels.sockets import REASONS

PATH = "/api/tunnels"
CLOSE_SECONDS = 2.0
_ACTION = Action.ACCOUNT_WRITE_WEBHOOKS
_REFUSALS = {**NO_TOKEN, 403: ("The token lacks the webhooks scope, or the operator has switched links off.", None)}
_NOT_FOUND = {**_REFUSALS, 404: ("The link has expired, does not exist, or belongs to someone else.", None)}


class TunnelInfo(Struct, frozen=True, rename="camel"):
    id: str
    url: str
    created_at: str
    expires_at: str


def routes(webhooks: Webhooks, guard: Guard, check_seconds: float) -> list[Route]:
    tunnels = webhooks.tunnels

    def opened_by(caller: Caller) -> str | None:
        grant = grant_of(webhooks, caller.identity)
        return None if grant is None else f"{grant.kind} {grant.client_id}"

    async def find(request: HubRequest, caller: Caller) -> Tunnel:
        return await tunnels.find_of_user(caller.user.id, opened_by(caller), request.param("id"))

    def info(tunnel: Tunnel) -> TunnelInfo:
        return TunnelInfo(tunnel.id, tunnels.links.url_of(tunnel.id), iso(tunnel.created_at), iso(tunnel.expires_at))

    async def open_one(request: HubRequest, caller: Caller) -> ASGIApp:
        return JsonResponse(info(await tunnels.open(actor_of(request), caller.user.id, opened_by(caller))), 201)

    async def get_one(request: HubRequest, caller: Caller) -> ASGIApp:
        tunnel = await find(request, caller)
        return _Connection(request, guard, tunnels, tunnel, info(tunnel), check_seconds)

    async def close_one(request: HubRequest, caller: Caller) -> ASGIApp:
        await tunnels.remove(await find(request, caller))
        return Response(status_code=204)

    at_one = PATH + "/{id}"
    opened = {201: ("The link, which expires after 72 hours.", TunnelInfo), **_REFUSALS}
    limited = {429: ("Too many links in a short time.", None)}
    shown = {200: ("The link.", TunnelInfo), **_NOT_FOUND}
    return [
        Route(
            "POST",
            PATH,
            own(_ACTION, open_one),
            Surface.API,
            "Open a temporary link to a receiver",
            answers={**opened, **limited},
            body_cap=4 * KIB,
        ),
        Route(
            "GET",
            at_one,
            own(_ACTION, get_one),
            Surface.API,
            "A temporary link; as a WebSocket, the requests to it",
            answers=shown,
            websocket=True,
        ),
        Route(
            "DELETE",
            at_one,
            own(_ACTION, close_one),
            Surface.API,
            "Close a temporary link",
            answers={204: ("The link no longer exists.", None), **_NOT_FOUND},
        ),
    ]


class _Connection(Struct, frozen=True):
    """The response to a GET: the link as JSON, or the WebSocket of the receiver's program."""

    request: HubRequest
    guard: Guard
    tunnels: Tunnels
    tunnel: Tunnel
    shown: TunnelInfo
    check_seconds: float

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await JsonResponse(self.shown)(scope, receive, send)
            return
        await self.tunnels.count_connection(self.tunnel)
        await receive()
        await send({"type": "websocket.accept"})

        async def receive_message() -> bytes | None:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                return None
            return message.get("bytes") or (message.get("text") or "").encode()

        async def send_message(message: bytes) -> None:
            try:
                await send({"type": "websocket.send", "bytes": message})
            except TimeoutError:
                raise
            except Exception:  # noqa: S110
                # The client may have disconnected, which each server reports differently; then `receive` ends too.
                pass

        run = self.tunnels.sockets.run
        code = await run(self.tunnel, receive_message, send_message, self._is_still_allowed, self.check_seconds)
        if code:
            # A client that reads nothing does not read this either.
            with contextlib.suppress(Exception):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await send({"type": "websocket.close", "code": code, "reason": REASONS[code]})

    async def _is_still_allowed(self) -> bool:
        """Whether the token still grants what it granted when the WebSocket was opened."""
        try:
            caller = await self.guard.reload_caller(self.request)
            decide(caller.identity, _ACTION, Account(caller.user.id)).enforce()
        except (Unauthorized, Forbidden, NotFound):
            return False
        return caller.user.id == self.tunnel.user_id
