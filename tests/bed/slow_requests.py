"""Requests that withhold the last byte of their body until the test asks for the response."""

import json
import socket

from tests.bed.running_hub import RunningHub


class SlowRequest:
    """A request of which the hub has received all but the last byte."""

    def __init__(self, hub: RunningHub, head: str, body: bytes, **headers: str) -> None:
        self._socket = socket.create_connection(hub.address, timeout=60)
        host, port = hub.address
        lines = [f"{head} HTTP/1.1", f"host: {host}:{port}", f"content-length: {len(body)}", "connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self._socket.sendall("\r\n".join([*lines, "expect: 100-continue", "", ""]).encode())
        # The hub sends 100 once it reads the body.
        assert self._socket.recv(65_536).startswith(b"HTTP/1.1 100 ")
        self._socket.sendall(body[:-1])
        self._last = body[-1:]

    def status(self) -> int:
        """Send the last byte; the status of the response."""
        self._socket.sendall(self._last)
        with self._socket, self._socket.makefile("rb") as response:
            return int(response.readline().split()[1])

    def close(self) -> None:
        self._socket.close()


def slow_json(hub: RunningHub, token: str, head: str, body: object) -> SlowRequest:
    """Start a request with a JSON body. `head` is the method and the path."""
    content = json.dumps(body).encode()
    return SlowRequest(hub, head, content, authorization=f"Bearer {token}", content_type="application/json")
