"""Requests that hold back the last byte of their body until the test asks for the response."""

import json
import socket

from tests.bed.running_hub import RunningHub


class SlowRequest:
    """All but the last byte was received, and the hub waits for that."""

    def __init__(self, hub: RunningHub, head: str, body: bytes, **headers: str) -> None:
        self._socket = socket.create_connection(hub.address, timeout=60)
        host, port = hub.address
        lines = [f"{head} HTTP/1.1", f"host: {host}:{port}", f"content-length: {len(body)}", "connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self._socket.sendall("\r\n".join([*lines, "expect: 100-continue", "", ""]).encode())
        # Sent once the hub reads the body.
        assert self._socket.recv(65_536).startswith(b"HTTP/1.1 100 ")
        self._socket.sendall(body[:-1])
        self._last = body[-1:]

    def status(self) -> int:
        """Of the answer, once it is complete."""
        self._socket.sendall(self._last)
        with self._socket, self._socket.makefile("rb") as answer:
            return int(answer.readline().split()[1])

    def close(self) -> None:
        self._socket.close()


def slow_json(hub: RunningHub, token: str, head: str, body: object) -> SlowRequest:
    """`head` is the method and the path."""
    content = json.dumps(body).encode()
    return SlowRequest(hub, head, content, authorization=f"Bearer {token}", content_type="application/json")
