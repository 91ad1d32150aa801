"""Clients with distinct IP addresses that send many concurrent requests and disconnect before the response."""

import contextlib
import json
import select
import socket
from collections.abc import Iterator, Sequence

import httpx
from tests.bed.processes import until
from tests.bed.running_hub import RunningHub

GREEDY, OTHER = "127.0.0.2", "127.0.0.3"


def _connected(hub: RunningHub, source: str) -> socket.socket:
    """A connection that the hub has accepted: a first request was answered."""
    connection = socket.create_connection(hub.address, timeout=60, source_address=(source, 0))
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: hub\r\n\r\n")
    assert b" 200 " in connection.recv(4096)
    return connection


@contextlib.contextmanager
def send_requests(
    hub: RunningHub, targets: Sequence[str], body: bytes = b"", source: str = GREEDY, authorization: str = ""
) -> Iterator[list[socket.socket]]:
    """Send concurrent requests on separate connections; leaving the block closes the connections."""
    method = "POST" if body else "GET"
    more = f"Authorization: {authorization}\r\n" if authorization else ""
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(_connected(hub, source)) for _ in targets]
        for connection, target in zip(connections, targets, strict=True):
            head = f"{method} {target} HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\n{more}"
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        yield connections


def count_answered(connections: Sequence[socket.socket]) -> int:
    return len(select.select(connections, [], [], 0)[0])


def statuses(hub: RunningHub, source: str = GREEDY) -> list[int]:
    """The logged statuses of finished requests from this address, without those of `_connected`."""
    lines = [json.loads(line) for line in hub.log.splitlines() if f'"{source}"' in line]
    return [line["status"] for line in lines if line["route"] != "/healthz"]


def client_from(hub: RunningHub, source: str) -> httpx.Client:
    return httpx.Client(base_url=hub.url, timeout=60, transport=httpx.HTTPTransport(local_address=source))


def statuses_after_disconnect(
    hub: RunningHub, targets: Sequence[str], body: bytes = b"", source: str = GREEDY, authorization: str = ""
) -> list[int]:
    """The statuses of requests whose clients disconnected at once, in the order in which they finished."""
    with send_requests(hub, targets, body, source, authorization), client_from(hub, OTHER) as other:
        # The response shows that the hub has received all requests above.
        assert other.get("/healthz").status_code == 200
    until(lambda: len(statuses(hub, source)) == len(targets))
    return statuses(hub, source)


def slow_yaml() -> bytes:
    """The largest front matter that the hub parses, which takes tens of milliseconds."""
    lines = "\n".join(f"k{number}: [{', '.join('a' for _ in range(30))}]" for number in range(150))
    return json.dumps({"content": f"---\n{lines}\n---\n"}).encode()
