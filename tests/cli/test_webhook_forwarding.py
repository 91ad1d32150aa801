"""Forwarding of `hubgate webhooks listen`, to receivers that misbehave."""

import contextlib
import socket
from threading import Thread

from hubgate.cli.user.forwarding import Forwarder
from hubgate.client.models import WebhookEvent

EVENT = WebhookEvent(cursor=1, id="a" * 24, headers={"Content-Type": "application/json"}, body="{}", skipped=None)


def test_endless_response_does_not_stop_the_listener() -> None:
    def respond(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                connection.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=respond, args=(listener,), daemon=True)
        thread.start()
        with Forwarder(f"http://127.0.0.1:{listener.getsockname()[1]}/webhooks/x", None) as forwarder:
            assert forwarder.send(EVENT).status == 200
        thread.join(60)
        assert not thread.is_alive()
