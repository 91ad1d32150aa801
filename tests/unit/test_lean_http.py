"""The client that most tests use: what it accepts, and the malformed answers that it reports."""

import socket
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import httpx
import pytest
from tests.bed.hostile import SeenRequest, http_response, run_hostile_server
from tests.bed.http_receiver import Receiver
from tests.bed.lean_http import LeanClient
from tests.bed.processes import free_port

OK = b"HTTP/1.1 200 OK\r\n"
EMPTY = OK + b"content-length: 0\r\n\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 20 OK\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/2 200 OK\r\ncontent-length: 0\r\n\r\n",
        b"200 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        OK + b"no colon\r\ncontent-length: 0\r\n\r\n",
        OK + b"space : x\r\ncontent-length: 0\r\n\r\n",
        OK + b"folded: x\r\n y\r\ncontent-length: 0\r\n\r\n",
        OK + b"control: \x01\r\ncontent-length: 0\r\n\r\n",
        OK + b"bare: x\ncontent-length: 0\r\n\r\n",
        OK + b"long: " + b"x" * 200_000,
        OK + b"\r\nno length",
        OK + b"content-length: -1\r\n\r\n",
        OK + b"content-length: 1\r\ncontent-length: 2\r\n\r\nab",
        OK + b"content-length: 1\r\ntransfer-encoding: chunked\r\n\r\na",
        OK + b"transfer-encoding: gzip\r\n\r\na",
        OK + b"content-length: 3\r\n\r\nab",
        OK + b"content-length: 1\r\n\r\nab",
        EMPTY + EMPTY,
        CHUNKED,
        CHUNKED + b"x\r\n",
        CHUNKED + b"2\r\na",
        CHUNKED + b"1\r\nab\r\n0\r\n\r\n",
        CHUNKED + b"1\r\na\r\n",
        CHUNKED + b"0\r\nno colon\r\n\r\n",
        CHUNKED + b"0\r\n\r\nmore",
    ],
)
def test_malformed_answers_are_reported(answer: bytes) -> None:
    with (
        run_hostile_server(answer) as server,
        LeanClient(base_url=server.url) as client,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        client.get("/")


def test_every_delimited_body_is_read() -> None:
    answers = [
        CHUNKED + b"3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\ntrailer: x\r\n\r\n",
        OK + b"Content-Length:  3 \r\n\r\nabc",
        OK + b"connection: close\r\n\r\nabc",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
        + OK
        + b"content-length: 3\r\n\r\nabc",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n",
    ]
    found = []
    with run_hostile_server(*answers) as server:
        for _ in answers:
            with LeanClient(base_url=server.url) as client:
                found.append(client.get("/"))
    assert [answer.content for answer in found] == [b"abc0123456789", b"abc", b"abc", b"abc", b"", b""]
    assert [answer.status_code for answer in found] == [200, 200, 200, 200, 204, 304]


def test_body_that_ends_with_the_connection_may_follow_the_head_later() -> None:
    head_received = Event()

    def answer(peer: socket.socket, _: SeenRequest) -> None:
        peer.sendall(OK + b"connection: close\r\n\r\n")
        assert head_received.wait(60)
        peer.sendall(b"abc")

    with (
        run_hostile_server(answer) as server,
        LeanClient(base_url=server.url) as client,
        client.stream("GET", "/") as response,
    ):
        head_received.set()
        assert response.read() == b"abc"


def test_answer_to_head_has_no_body() -> None:
    with (
        run_hostile_server(OK + b"content-length: 5\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n\r\n") as server,
        LeanClient(base_url=server.url) as client,
    ):
        answer = client.head("/")
        assert dict(client.cookies) == {"a": "1", "b": "2"}
    assert answer.headers.get_list("set-cookie") == ["a=1", "b=2"]


def test_bodies_are_sent_with_their_length_or_in_chunks() -> None:
    received = b""

    def read_chunks(peer: socket.socket, seen: SeenRequest) -> None:
        nonlocal received
        received = seen.body
        while not received.endswith(b"0\r\n\r\n"):
            received += peer.recv(65_536)
        peer.sendall(EMPTY)

    with run_hostile_server(http_response(200), read_chunks) as server, LeanClient(base_url=server.url) as client:
        client.post("/a?b=c", json={"d": 1})
        client.post("/", content=iter([b"one", b"", b"two"]))
    first, second = server.seen
    assert (first.method, first.target, first.headers["content-length"]) == ("POST", "/a?b=c", "7")
    assert (first.body, second.headers["transfer-encoding"]) == (b'{"d":1}', "chunked")
    assert received == b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"


def test_line_break_in_a_header_is_not_sent() -> None:
    with (
        run_hostile_server(EMPTY) as server,
        LeanClient(base_url=server.url) as client,
        pytest.raises(httpx.LocalProtocolError),
    ):
        client.get("/", headers={"x": "a\r\nb: c"})


def test_connections_are_used_again_until_they_are_closed() -> None:
    is_closed = Event()

    def answer_twice(peer: socket.socket, _: SeenRequest) -> None:
        peer.sendall(OK + b"content-length: 5\r\n\r\nfirst")
        assert peer.recv(65_536)
        peer.sendall(OK + b"content-length: 6\r\n\r\nsecond")
        peer.close()
        is_closed.set()

    with run_hostile_server(answer_twice, EMPTY) as server, LeanClient(base_url=server.url) as client:
        assert [client.get("/").text for _ in range(2)] == ["first", "second"]
        assert len(server.seen) == 1
        assert is_closed.wait(60)
        assert client.get("/").status_code == 200


def _wait_for_the_end(peer: socket.socket, _: SeenRequest) -> None:
    peer.sendall(CHUNKED + b"1\r\na\r\n")
    assert peer.recv(1) == b""


def test_answer_that_is_not_read_to_its_end_closes_its_connection() -> None:
    with run_hostile_server(_wait_for_the_end, EMPTY) as server, LeanClient(base_url=server.url) as client:
        with client.stream("GET", "/") as answer:
            assert next(answer.iter_raw()) == b"a"
        # The server accepts this connection once the first is closed.
        assert client.get("/").status_code == 200


def test_silent_server_is_a_timeout() -> None:
    with (
        run_hostile_server(_wait_for_the_end) as server,
        LeanClient(base_url=server.url, timeout=0.05) as client,
        pytest.raises(httpx.ReadTimeout),
    ):
        client.get("/")


def test_missing_server_is_a_connect_error() -> None:
    with LeanClient(base_url=f"http://127.0.0.1:{free_port()}") as client, pytest.raises(httpx.ConnectError):
        client.get("/")


def test_threads_get_their_own_answers(receiver: Receiver) -> None:
    receiver.answer = lambda request: (200, request.path.encode())
    paths = [f"/{number}" for number in range(100)]
    with LeanClient(base_url=receiver.url) as client, ThreadPoolExecutor(8) as pool:
        assert [answer.text for answer in pool.map(client.get, paths)] == paths
