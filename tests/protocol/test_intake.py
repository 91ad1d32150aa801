"""Checks of a request before any handler sees it, on both HTTP servers."""

import time

import pytest
from tests.bed.running_hub import RunningHub
from tests.protocol.raw import raw_request, status_of

FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    "header", ["Authorization: Bearer x", "Content-Type: text/plain", "Host: evil.example", "Origin: https://x.example"]
)
def test_repeated_single_value_header_is_rejected(on_each_server: RunningHub, header: str) -> None:
    request = f"GET /healthz HTTP/1.1\r\nHost: hub\r\n{header}\r\n{header}\r\nConnection: close\r\n\r\n"
    answer = raw_request(on_each_server.address, request.encode())
    assert status_of(answer) == 400
    # uvicorn's parser rejects some of them itself, with its own message.
    assert b'{"error":"The ' in answer or on_each_server.settings.server == "uvicorn"


def test_a_missing_host_is_refused(on_each_server: RunningHub) -> None:
    assert status_of(raw_request(on_each_server.address, b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")) == 400


def test_huge_headers_are_refused(on_each_server: RunningHub) -> None:
    with on_each_server.client() as client:
        assert client.get("/healthz", headers={"x-filler": "x" * 40_000}).status_code == 431
        assert client.get("/healthz?" + "x" * 20_000).status_code in (414, 431)
        assert client.get("/healthz", headers={"x-filler": "x" * 9_000}).status_code == 200


def test_responses_on_a_kept_connection_are_not_delayed(on_each_server: RunningHub) -> None:
    """With Nagle's algorithm each waits at least 40 ms for an acknowledgement, so even the fastest one is slow."""
    took = []
    with on_each_server.client() as client:
        for _ in range(30):
            started = time.monotonic()
            assert client.get("/healthz").status_code == 200
            took.append(time.monotonic() - started)
    assert min(took[1:]) < 0.038


def test_announced_body_over_the_limit_is_rejected_unread(on_each_server: RunningHub) -> None:
    head = b"POST /api/test/echo HTTP/1.1\r\nHost: hub\r\nContent-Length: 99999999999\r\n"
    answer = raw_request(on_each_server.address, head + b"Content-Type: application/x-www-form-urlencoded\r\n\r\n")
    assert status_of(answer) == 413


def test_chunked_body_is_cut_off_at_the_limit(on_each_server: RunningHub) -> None:
    def endless():
        for _ in range(200):
            yield b"a=" + b"b" * 1000 + b"&"

    with on_each_server.client() as client:
        response = client.post(
            "/api/test/echo", content=endless(), headers={"content-type": "application/x-www-form-urlencoded"}
        )
        assert response.status_code == 413
        assert response.json()["error"].startswith("The body is larger")


def test_slow_body_is_cut_off_at_its_deadline(on_each_server: RunningHub) -> None:
    head = b"POST /api/test/echo HTTP/1.1\r\nHost: hub\r\nContent-Length: 1000\r\nConnection: close\r\n"
    head += b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
    started = time.monotonic()
    answer = raw_request(on_each_server.address, head, b"a=" + b"b" * 200, pause=0.02)
    assert status_of(answer) == 408
    # The deadline is two seconds; other routes have thirty.
    assert time.monotonic() - started < 25


def test_incomplete_headers_are_cut_off(sqlite_hub: RunningHub) -> None:
    """On granian, the default; uvicorn leaves this to the proxy in front of it."""
    assert raw_request(sqlite_hub.address, b"GET /healthz HTTP/1.1\r\nHost: ") == b""


@pytest.mark.parametrize(
    "framing",
    [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Content-Length: +5",
        "Content-Length: " + "0" * 5000 + "5",
    ],
)
def test_ambiguous_framing_is_refused(on_each_server: RunningHub, framing: str) -> None:
    """With an error, or, as RFC 9112 also allows, by reading the chunks and closing the connection."""
    head = f"POST /api/test/echo HTTP/1.1\r\nHost: hub\r\nContent-Type: {FORM}\r\n{framing}\r\n\r\n"
    answer = raw_request(on_each_server.address, head.encode() + b"5\r\na=b&c\r\n0\r\n\r\n")
    assert status_of(answer) in (400, 501) or b"connection: close" in answer


def test_empty_second_host_header_is_rejected(on_each_server: RunningHub) -> None:
    for hosts in ("Host: hub\r\nHost:", "Host:\r\nHost: hub"):
        request = f"GET /healthz HTTP/1.1\r\n{hosts}\r\nConnection: close\r\n\r\n"
        assert status_of(raw_request(on_each_server.address, request.encode())) == 400


def test_malformed_chunks_get_an_answer_of_the_hub(sqlite_hub: RunningHub) -> None:
    head = b"POST /api/test/echo HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n"
    head += b"Content-Type: application/x-www-form-urlencoded\r\n\r\nzz\r\n"
    answer = raw_request(sqlite_hub.address, head)
    assert status_of(answer) == 400
    assert b"x-request-id" in answer


def test_headers_are_checked_on_unknown_paths_too(on_each_server: RunningHub) -> None:
    request = b"GET /nothing HTTP/1.1\r\nHost: hub\r\nAuthorization: a\r\nAuthorization: b\r\nConnection: close\r\n\r\n"
    assert status_of(raw_request(on_each_server.address, request)) == 400


@pytest.mark.parametrize("path", ["/api/test/echo", "/api/nothing", "/no/such/page"])
def test_early_rejection_closes_the_connection(on_each_server: RunningHub, path: str) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: hub\r\nContent-Length: 99999999\r\n"
    head += "Content-Type: application/x-www-form-urlencoded\r\n\r\n"
    answer = raw_request(on_each_server.address, head.encode())
    assert b"connection: close" in answer.lower()


def test_body_is_read_completely_while_the_answer_streams(on_each_server: RunningHub) -> None:
    """As git needs: detecting a disconnect must not consume parts of the body."""

    def parts():
        for number in range(10):
            yield b"x" * (100 + number)

    with on_each_server.client() as client:
        assert client.post("/api/test/pipe", content=parts()).text.split() == [str(sum(range(100, 110)))]


def test_head_does_not_generate_the_whole_body(on_each_server: RunningHub) -> None:
    with on_each_server.client() as client:
        assert client.head("/api/test/endless").status_code == 200
        assert client.get("/healthz").status_code == 200


def test_upgrade_request_is_an_ordinary_request(on_each_server: RunningHub) -> None:
    with on_each_server.client() as client:
        upgrade = {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2-settings": "AAMAAABkAAQAAP__"}
        response = client.get("/healthz", headers=upgrade)
    assert response.status_code == 200
    assert response.headers["x-request-id"]


def test_websocket_is_rejected_by_other_routes(on_each_server: RunningHub) -> None:
    with on_each_server.client() as client:
        upgrade = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
        response = client.get("/api/whoami-v2", headers={**upgrade, "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="})
    assert (response.status_code, response.json()["error"]) == (400, "This address does not accept a WebSocket.")
    assert response.headers["x-request-id"]
