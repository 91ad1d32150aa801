"""What a request must be before anything looks at it, on both HTTP servers."""

import time

import pytest
from tests.bed.running import RunningHub
from tests.protocol.raw import raw_request, status_of


@pytest.mark.parametrize(
    "header", ["Authorization: Bearer x", "Content-Type: text/plain", "Host: evil.example", "Origin: https://x.example"]
)
def test_a_doubled_single_value_header_is_refused(on_each_server: RunningHub, header: str) -> None:
    request = f"GET /healthz HTTP/1.1\r\nHost: hub\r\n{header}\r\n{header}\r\nConnection: close\r\n\r\n"
    answer = raw_request(on_each_server.address, request.encode())
    assert status_of(answer) == 400
    # uvicorn's parser refuses some of them itself, in its own words.
    assert b'{"error":"The ' in answer or on_each_server.settings.server == "uvicorn"


def test_a_missing_host_is_refused(on_each_server: RunningHub) -> None:
    assert status_of(raw_request(on_each_server.address, b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")) == 400


def test_huge_headers_are_refused(on_each_server: RunningHub) -> None:
    with on_each_server.client() as client:
        assert client.get("/healthz", headers={"x-filler": "x" * 40_000}).status_code == 431
        assert client.get("/healthz?" + "x" * 20_000).status_code in (414, 431)
        assert client.get("/healthz", headers={"x-filler": "x" * 9_000}).status_code == 200


def test_an_announced_body_over_the_cap_is_refused_unread(on_each_server: RunningHub) -> None:
    head = b"POST /api/test/echo HTTP/1.1\r\nHost: hub\r\nContent-Length: 99999999999\r\n"
    answer = raw_request(on_each_server.address, head + b"Content-Type: application/x-www-form-urlencoded\r\n\r\n")
    assert status_of(answer) == 413


def test_a_chunked_body_is_cut_off_at_the_cap(on_each_server: RunningHub) -> None:
    def endless():
        for _ in range(200):
            yield b"a=" + b"b" * 1000 + b"&"

    with on_each_server.client() as client:
        response = client.post(
            "/api/test/echo", content=endless(), headers={"content-type": "application/x-www-form-urlencoded"}
        )
        assert response.status_code == 413
        assert response.json()["error"].startswith("The body is larger")


def test_a_dripping_body_meets_its_deadline(on_each_server: RunningHub) -> None:
    head = b"POST /api/test/echo HTTP/1.1\r\nHost: hub\r\nContent-Length: 1000\r\nConnection: close\r\n"
    head += b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
    started = time.monotonic()
    answer = raw_request(on_each_server.address, head + b"a=" + b"b" * 14, pause=0.02)
    assert status_of(answer) == 408
    assert time.monotonic() - started < 10


def test_an_unfinished_head_is_cut_off(hub: RunningHub) -> None:
    """On granian, the default; uvicorn leaves this to the proxy before it."""
    assert raw_request(hub.address, b"GET /healthz HTTP/1.1\r\nHost: ", seconds=20) == b""
