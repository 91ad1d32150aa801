"""Receivers behind tunnels: `launch(share=True)` in the test process, and the start of a WebSocket by hand."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from tests.bed.receiver_library import SECRET

from hubgate.receiver import Request, WebhookPayload, WebhooksServer


@dataclass
class SharedReceiver:
    """A receiver with the handlers `train` and `raw`, and what they received."""

    server: WebhooksServer
    payloads: list[WebhookPayload] = field(default_factory=list)
    # By handlers that take the whole request: headers and body.
    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    answer: Any = None

    @property
    def link(self) -> str:
        assert self.server.share_url is not None
        return self.server.share_url

    @property
    def tunnel_id(self) -> str:
        return self.link.rstrip("/").rpartition("/")[2]


@contextmanager
def share_receiver(monkeypatch: pytest.MonkeyPatch, hub_url: str, token: str) -> Iterator[SharedReceiver]:
    monkeypatch.setenv("HUBGATE_ENDPOINT", hub_url)
    monkeypatch.setenv("HUBGATE_TOKEN", token)
    shared = SharedReceiver(WebhooksServer(webhook_secret=SECRET))

    @shared.server.add_webhook
    async def train(payload: WebhookPayload) -> Any:
        shared.payloads.append(payload)
        return shared.answer

    @shared.server.add_webhook
    async def raw(request: Request) -> Any:
        shared.requests.append((dict(request.headers), request.content))
        return shared.answer

    shared.server.launch(port=0, share=True, prevent_thread_lock=True)
    try:
        yield shared
    finally:
        shared.server.close()


def open_websocket(connection: socket.socket, address: httpx.URL, tunnel_id: str, token: str) -> None:
    """Open the WebSocket of a tunnel without a library, for programs that break its rules."""
    lines = (
        f"GET /api/tunnels/{tunnel_id} HTTP/1.1",
        f"Host: {address.netloc.decode()}",
        f"Authorization: Bearer {token}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    )
    connection.sendall("\r\n".join((*lines, "", "")).encode())
    assert connection.recv(12) == b"HTTP/1.1 101"
