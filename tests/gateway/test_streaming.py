"""Bodies stream through the gateway in both directions, and each side notices when the other is gone."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator

import httpx
import pytest
from tests.bed.people import api
from tests.bed.processes import until
from tests.bed.slow_requests import SlowRequest, slow_json
from tests.bed.upstream import Upstream, UpstreamRequest
from tests.gateway.conftest import Stage

EVENTS = (("content-type", "text/event-stream"), ("transfer-encoding", "chunked"))
MIB = 1024 * 1024


def test_events_are_forwarded_one_by_one(on_each: Stage, upstream: Upstream) -> None:
    read = threading.Semaphore(0)

    def answer(request: UpstreamRequest) -> None:
        request.body()
        request.start(200, *EVENTS)
        for number in range(3):
            request.write_chunk(b"data: %d\n\n" % number)
            # The next event is sent only after the client has read this one.
            assert read.acquire(timeout=60)
        request.write(b"0\r\n\r\n")

    upstream.answer = answer
    received = []
    with on_each.client() as client, client.stream("POST", "/v1/chat/completions", json={"stream": True}) as response:
        assert response.headers["content-type"] == "text/event-stream"
        for piece in response.iter_raw():
            received.append(piece)
            read.release()
    assert received == [b"data: 0\n\n", b"data: 1\n\n", b"data: 2\n\n"]


def test_body_is_forwarded_part_by_part(on_each: Stage, upstream: Upstream) -> None:
    part_read = threading.Semaphore(0)
    parts: list[bytes] = []

    def answer(request: UpstreamRequest) -> None:
        for part in request.parts():
            parts.append(part)
            part_read.release()
        request.reply(len(parts))

    def body() -> Iterator[bytes]:
        for number in range(3):
            yield b"part %d" % number
            # The client sends the next part only after the service has read this one.
            assert part_read.acquire(timeout=60)

    upstream.answer = answer
    with on_each.client() as client:
        assert client.post("/v1/audio", content=body()).json() == 3
    assert parts == [b"part 0", b"part 1", b"part 2"]


def test_service_may_answer_before_it_has_read_the_body(on_each: Stage, upstream: Upstream) -> None:
    def answer(request: UpstreamRequest) -> None:
        assert next(request.parts())
        request.reply({"error": "too large"}, 413)

    upstream.answer = answer
    with _post(on_each, "/v1/files", length=1000) as connection:
        assert b" 413 " in _receive_until(connection, b"too large")


@pytest.mark.parametrize("framing", ["chunked", "length"])
def test_service_that_dies_cuts_the_connection(on_each: Stage, upstream: Upstream, framing: str) -> None:
    """A clean end would make half an answer look complete."""
    begun = threading.Event()

    def answer(request: UpstreamRequest) -> None:
        chunked = framing == "chunked"
        request.start(200, EVENTS[1] if chunked else ("content-length", "1000"))
        (request.write_chunk if chunked else request.write)(b"half")
        assert begun.wait(60)
        request.break_connection()

    upstream.answer = answer
    with on_each.client() as client, client.stream("GET", "/v1/x") as response:
        pieces = response.iter_raw()
        assert next(pieces) == b"half"
        begun.set()
        with pytest.raises(httpx.RemoteProtocolError):
            next(pieces)
    assert_logged_in_one_line(on_each)


@pytest.mark.parametrize("framing", ["chunked", "length"])
def test_service_that_ends_early_cuts_the_connection(on_each: Stage, upstream: Upstream, framing: str) -> None:
    def answer(request: UpstreamRequest) -> None:
        chunked = framing == "chunked"
        request.start(200, EVENTS[1] if chunked else ("content-length", "1000"))
        (request.write_chunk if chunked else request.write)(b"half")

    upstream.answer = answer
    with on_each.client() as client, pytest.raises(httpx.RemoteProtocolError):
        client.get("/v1/x")
    assert_logged_in_one_line(on_each)


@pytest.mark.limits(upstream_silence_seconds=0.3)
def test_service_that_hangs_in_the_middle_is_cut_off(on_each: Stage, upstream: Upstream) -> None:
    def answer(request: UpstreamRequest) -> None:
        request.start(200, *EVENTS)
        request.write_chunk(b"half")
        request.wait_until_closed()

    upstream.answer = answer
    with on_each.client() as client, pytest.raises(httpx.RemoteProtocolError):
        client.get("/v1/x")
    assert upstream.last.closed.wait(60)


@pytest.mark.limits(stall_seconds=0.3)
def test_client_that_reads_nothing_is_cut_off(on_each: Stage, upstream: Upstream) -> None:
    def answer(request: UpstreamRequest) -> None:
        request.body()
        request.start(200, ("content-length", str(200 * MIB)))
        with contextlib.suppress(OSError):
            for _ in range(200):
                request.write(b"x" * MIB)
        request.closed.set()

    upstream.answer = answer
    with _post(on_each, "/v1/x"):
        until(lambda: upstream.received)
        assert upstream.last.closed.wait(60)


def test_disconnect_closes_the_connection_to_the_service(on_each: Stage, upstream: Upstream) -> None:
    def answer(request: UpstreamRequest) -> None:
        request.body()
        if request.path.endswith("/begun"):
            request.start(200, *EVENTS)
            request.write_chunk(b"data: 0\n\n")
        request.wait_until_closed()

    upstream.answer = answer
    with _post(on_each, "/v1/begun") as connection:
        assert b"data: 0" in _receive_until(connection, b"data: 0")
    until(lambda: upstream.received)
    assert upstream.last.closed.wait(60), "while events are streamed"
    with _post(on_each, "/v1/waiting"):
        until(lambda: len(upstream.received) == 2)
    assert upstream.last.closed.wait(60), "before the answer has begun"
    assert '"level":"error"' not in on_each.hub.log


def test_disconnect_in_the_body_closes_the_connection_to_the_service(on_each: Stage, upstream: Upstream) -> None:
    complete = []

    def answer(request: UpstreamRequest) -> None:
        try:
            complete.append(request.body())
        finally:
            request.closed.set()

    upstream.answer = answer
    SlowRequest(on_each.hub, "POST /v1/files", b"x" * 1000, authorization=_bearer(on_each)).close()
    until(lambda: upstream.received)
    assert upstream.last.closed.wait(60)
    assert complete == []


def test_o44_revoked_token_cannot_complete_a_request(stage: Stage, upstream: Upstream) -> None:
    """The service never receives the last byte of the body."""
    complete = []
    upstream.answer = lambda request: complete.append(request.body())
    with contextlib.closing(slow_json(stage.hub, stage.token, "POST /api/jobs/ada", {"flavor": "cpu"})) as begun:
        until(lambda: upstream.received)
        with api(stage.hub) as anyone:
            assert anyone.post("/api/credentials/revoke", json={"credentials": [stage.token]}).status_code == 202
        assert begun.status() == 401
    assert complete == []


def _bearer(stage: Stage) -> str:
    return f"Bearer {stage.token}"


def _post(stage: Stage, path: str, length: int = 2) -> socket.socket:
    """Send a request with the first two bytes of its body."""
    connection = socket.create_connection(stage.hub.address, timeout=60)
    head = f"POST {path} HTTP/1.1\r\nhost: hub\r\nauthorization: {_bearer(stage)}\r\ncontent-length: {length}\r\n\r\n"
    connection.sendall(head.encode() + b"{}")
    return connection


def _receive_until(connection: socket.socket, expected: bytes) -> bytes:
    received = b""
    while expected not in received:
        part = connection.recv(65_536)
        assert part, received
        received += part
    return received


def assert_logged_in_one_line(stage: Stage) -> None:
    """Services are expected to fail, and a traceback of the hub would point to the wrong program."""
    until(lambda: " with 502" in stage.hub.log)
    lines = [json.loads(line) for line in stage.hub.log.splitlines() if " with 502" in line]
    assert [(line["level"], "error" in line) for line in lines] == [("warning", False)], lines
