"""`/tunnel/{id}/`: temporary links to receivers. They forward only POSTs to /webhooks/, without any credential.

Anything that a receiver answers is sent as JSON, in a sandbox without an origin: it must not run as a page of the hub
(attack W39). A GET never reaches the receiver.
"""

from hubgate.server.edge.routes import Route, public
from hubgate.server.egress.tunnel_links import PREFIX, is_forwarded
from hubgate.server.errors import NotFound
from hubgate.server.http.asgi import ASGIApp
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.web.receiver_responses import forwarded_answer, path_at_receiver, receiver_page
from hubgate.server.webhooks.tunnels.context import NO_LINK, Tunnels
from hubgate.server.webhooks.tunnels.model import MAX_BODY, Tunnel

_ANY = PREFIX + "{id}/{path:path}"


def routes(tunnels: Tunnels) -> list[Route]:
    async def find(request: HubRequest) -> Tunnel:
        # If links have a host of their own, they have no other address.
        if tunnels.links.has_own_host is not request.scope.get("tunnel_host", False):
            raise NotFound(NO_LINK)
        return await tunnels.find(request.param("id"))

    async def show(request: HubRequest) -> ASGIApp:
        try:
            await find(request)
        except NotFound:
            return receiver_page("Link not found", NO_LINK, 404)
        text = "This temporary link forwards webhooks to a program on its owner's computer. It has no pages."
        return receiver_page("A webhook receiver", text)

    async def forward(request: HubRequest) -> ASGIApp:
        tunnel = await find(request)
        path = path_at_receiver(request, 2)
        if not is_forwarded(path):
            raise NotFound("This link forwards only requests to /webhooks/.")
        await tunnels.count_post(tunnel)
        seconds = tunnels.limits.answer_seconds
        answer = await tunnels.forward(tunnel.id, path, request.headers.items(), await request.body(), seconds)
        return forwarded_answer(answer)

    shown, posted = "A temporary link in a browser", "A request to a receiver behind a tunnel"
    return [
        *(Route("GET", path, public(show), Surface.TUNNEL, shown, secret_address=True) for path in _paths()),
        Route("POST", _ANY, public(forward), Surface.TUNNEL, posted, body_cap=MAX_BODY, secret_address=True),
    ]


def _paths() -> list[str]:
    return [PREFIX + "{id}", _ANY]
