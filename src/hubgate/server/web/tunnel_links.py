"""`/tunnel/{id}/`: temporary links to receivers. They forward only POSTs to /webhooks/, without any credential.

Anything that a receiver answers is sent as JSON, in a sandbox without an origin: it must not run as a page of the hub
(attack W39). A GET never reaches the receiver.
"""

import base64
import hashlib

from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp

from hubgate.server.edge.routes import Route, public
from hubgate.server.egress.tunnel_links import PREFIX, is_forwarded
from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.webhooks.tunnels.context import Tunnels
from hubgate.server.webhooks.tunnels.forwarding import NO_LINK
from hubgate.server.webhooks.tunnels.model import MAX_BODY, Tunnel

_POLICY = "sandbox; default-src 'none'"
_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_PAGE_POLICY = f"{_POLICY}; style-src 'sha256-{_STYLE_HASH}'"
_PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    "<title>{title}</title><style>" + _STYLE.replace("{", "{{").replace("}", "}}") + "</style></head>"
    "<body><main><h1>{title}</h1><p>{text}</p></main></body></html>"
)
_LINK_PAGE = _PAGE.format(
    title="A webhook receiver",
    text="This temporary link forwards webhooks to a program on its owner's computer. It has no pages.",
)
_MISSING_PAGE = _PAGE.format(title="Link not found", text=NO_LINK)

_ANY = PREFIX + "{id}/{path:path}"


def routes(tunnels: Tunnels) -> list[Route]:
    async def find(request: HubRequest) -> Tunnel:
        # If links have a host of their own, they have no other address.
        if tunnels.links.has_own_host is not request.scope.get("tunnel_host", False):
            raise NotFound(NO_LINK)
        return await tunnels.find(request.param("id"))

    async def show(request: HubRequest) -> ASGIApp:
        headers = {"content-security-policy": _PAGE_POLICY}
        try:
            await find(request)
        except NotFound:
            return HTMLResponse(_MISSING_PAGE, 404, headers)
        return HTMLResponse(_LINK_PAGE, 200, headers)

    async def forward(request: HubRequest) -> ASGIApp:
        tunnel = await find(request)
        path = _raw_path(request)
        if not is_forwarded(path):
            raise NotFound("This link forwards only requests to /webhooks/.")
        await tunnels.count_post(tunnel)
        seconds = tunnels.limits.answer_seconds
        answer = await tunnels.forward(tunnel.id, path, request.headers.items(), await request.body(), seconds)
        headers = {"content-security-policy": _POLICY, "x-content-type-options": "nosniff"}
        if answer.retry_after is not None:
            headers["retry-after"] = answer.retry_after
        # A 204 or 304 has no body.
        body = b"" if answer.status in (204, 205, 304) else answer.body
        return Response(body, answer.status, headers, "application/json")

    shown, posted = "A temporary link in a browser", "A request to a receiver behind a tunnel"
    return [
        *(Route("GET", path, public(show), Surface.TUNNEL, shown, secret_address=True) for path in _paths()),
        Route("POST", _ANY, public(forward), Surface.TUNNEL, posted, body_cap=MAX_BODY, secret_address=True),
    ]


def _paths() -> list[str]:
    return [PREFIX + "{id}", _ANY]


def _raw_path(request: HubRequest) -> str:
    """The path at the receiver, as sent, with its query."""
    raw: str = request.scope["raw_path"].decode("ascii")
    path = "/" + raw.removeprefix(PREFIX).partition("/")[2]
    query: str = request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path
