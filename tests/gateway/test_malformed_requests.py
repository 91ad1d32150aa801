"""A request whose head, framing or address two programs could read differently does not reach the service."""

import socket

import pytest
from tests.bed.upstream import Upstream
from tests.gateway.conftest import Stage

pytestmark = pytest.mark.one_engine


@pytest.mark.parametrize(
    "head",
    [
        "x-forwarded-for : 1",
        "x-a: 1\r\n x-forwarded-for: 1",
        "x-a: 1\rx-forwarded-for: 1",
        "x-a: \0",
        "transfer-encoding: identity, chunked",
        "transfer-encoding : chunked",
        "content-length: 5\r\ncontent-length: 6",
        "content-length: +5",
    ],
)
def test_ambiguous_request_head_never_reaches_the_service(on_each: Stage, upstream: Upstream, head: str) -> None:
    line = f"POST /v1/x HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {on_each.token}\r\n{head}\r\n\r\n"
    with socket.create_connection(on_each.hub.address, timeout=60) as connection:
        connection.sendall(line.encode() + b"0\r\n\r\n")
        assert b" 400 " in connection.recv(65_536).split(b"\r\n")[0]
    assert upstream.received == []


@pytest.mark.parametrize("body", [b"5\r\nhello\r\nzz\r\n", b"5\r\nhello", b"5\r\nhelloXX0\r\n\r\n", b"-1\r\n"])
def test_malformed_chunks_never_complete_a_request(on_each: Stage, upstream: Upstream, body: bytes) -> None:
    complete = []
    upstream.answer = lambda request: complete.append(request.body())
    line = f"POST /v1/x HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {on_each.token}\r\n"
    with socket.create_connection(on_each.hub.address, timeout=60) as connection:
        connection.sendall(f"{line}transfer-encoding: chunked\r\n\r\n".encode() + body)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65_536):
            continue
    assert complete == []
    assert '"level":"error"' not in on_each.hub.log


@pytest.mark.parametrize("target", ["http://evil.example/v1/x", "/v1/x#/../y", "/v1/x#?a"])
def test_host_and_fragment_of_the_address_are_not_forwarded(on_each: Stage, upstream: Upstream, target: str) -> None:
    with socket.create_connection(on_each.hub.address, timeout=60) as connection:
        head = f"GET {target} HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {on_each.token}\r\n\r\n"
        connection.sendall(head.encode())
        assert b" 200 " in connection.recv(65_536).split(b"\r\n")[0]
    assert upstream.last.path == "/v1/x"
    assert upstream.last.header("host") == upstream.url.removeprefix("http://")


@pytest.mark.parametrize("end", ["..%3Fx", "..%23x", ".%09./x", "x%0D%0Ay", "x%250Ay", "%7F", "%00", "%ff", "%c0%ae"])
def test_address_that_a_service_could_read_differently_is_rejected(stage: Stage, upstream: Upstream, end: str) -> None:
    """Some services decode the path and parse the result as an address again."""
    with stage.client() as client:
        assert client.post(f"/api/jobs/ada/{end}").status_code == 400
    assert upstream.received == []
