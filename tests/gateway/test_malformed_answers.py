"""An answer that an HTTP server cannot send, or that a proxy in front of the hub would act on, is not passed on."""

import pytest
from tests.bed.upstream import Upstream
from tests.gateway.conftest import Stage

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 600 X\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 999 X\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 000 X\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n{}",
        OK + b"x-a: \x01\r\n\r\n{}",
        OK + b"x-a: a\x7fb\r\n\r\n{}",
        OK + b"x-a: a\x00b\r\n\r\n{}",
        OK + b"x-a: a\rset-cookie: token=x\r\n\r\n{}",
        OK + b"x-a: a\r\n set-cookie: token=x\r\n\r\n{}",
        OK + b"x a: b\r\n\r\n{}",
        OK + b"x(a: b\r\n\r\n{}",
        OK + b": b\r\n\r\n{}",
        OK + b"content-length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\n{}",
    ],
)
def test_malformed_answer_is_a_bad_gateway(on_each: Stage, upstream: Upstream, answer: bytes) -> None:
    upstream.answer = lambda request: request.write(answer)
    with on_each.client() as client:
        given = client.get("/v1/models")
    assert (given.status_code, "set-cookie" in given.headers) == (502, False)
    assert '"level":"error"' not in on_each.hub.log


def test_304_may_declare_the_length_of_the_body_it_replaces(on_each: Stage, upstream: Upstream) -> None:
    """RFC 9110, section 8.6."""
    upstream.answer = lambda request: request.start(304, ("etag", "x"), ("content-length", "100"))
    with on_each.client() as client:
        given = client.get("/v1/models", headers={"if-none-match": "x"})
        assert (given.status_code, given.headers["etag"], given.content) == (304, "x", b"")
        upstream.answer = lambda request: request.reply("next")
        assert client.get("/v1/models").json() == "next"
    assert '"level":"error"' not in on_each.hub.log


@pytest.mark.parametrize("second", [b"HTTP/1.1 500 X\r\n\r\n", b"HTTP/1.1 100 X\r\n\r\n"])
def test_bytes_after_the_answer_do_not_change_it(on_each: Stage, upstream: Upstream, second: bytes) -> None:
    upstream.answer = lambda request: request.write(OK + b"\r\n{}" + second)
    with on_each.client() as client:
        given = client.get("/v1/models")
    assert (given.status_code, given.content) == (200, b"{}")


def test_proxy_in_front_of_the_hub_gets_no_commands(on_each: Stage, upstream: Upstream) -> None:
    """nginx would serve an internal file, or store an answer to an authenticated request."""
    commands = {"x-accel-redirect": "/private/key", "x-accel-expires": "3600", "x-sendfile": "/etc/passwd"}
    upstream.answer = lambda request: request.reply({}, 200, *commands.items(), ("x-accel-buffering", "no"))
    with on_each.client() as client:
        given = client.get("/v1/models")
    assert set(given.headers) & set(commands) == set()
    assert given.headers["x-accel-buffering"] == "no"
