"""Temporary links to receivers, for `hubgate.receiver`."""

from typing import Any

from hubgate.client.addresses import path_segment
from hubgate.client.codec import decode
from hubgate.client.models import TunnelLink
from hubgate.client.session import Call, Session, json_call
from hubgate.client.wire import Flow

_PATH = "/api/tunnels"


def open_tunnel(session: Session) -> Flow[TunnelLink]:
    return _decoded((yield from session.json(json_call("POST", _PATH, {}))))


def get_tunnel(session: Session, tunnel_id: str) -> Flow[TunnelLink]:
    return _decoded((yield from session.json(Call("GET", _path(tunnel_id)))))


def close_tunnel(session: Session, tunnel_id: str) -> Flow[None]:
    yield from session.call(Call("DELETE", _path(tunnel_id)))


def socket_of(session: Session, tunnel_id: str) -> Flow[tuple[str, dict[str, str]]]:
    """The address of the WebSocket that carries the requests to a link, and the headers to open it with."""
    # Raises NotFound if the link no longer exists, and refreshes the token if it has expired.
    yield from get_tunnel(session, tunnel_id)
    token = yield from session.credentials.current(session)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return "ws" + session.endpoint.removeprefix("http") + _path(tunnel_id), headers


def _path(tunnel_id: str) -> str:
    return f"{_PATH}/{path_segment(tunnel_id)}"


def _decoded(value: Any) -> TunnelLink:
    return decode(TunnelLink, value)
