"""Invalid or hostile responses of a hub raise clear exceptions, and the token is not sent to other hosts."""

import gzip
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.bed.hostile import (
    CLIENT_TYPES,
    TOKEN,
    ScriptedResponse,
    SeenRequest,
    call_with,
    http_response,
    json_response,
    reset,
    run_hostile_server,
)

from hubgate.client import errors

ME = {"id": "0" * 24, "name": "ada", "type": "user", "orgs": [], "auth": {"type": "oauth"}}
WEBHOOK = {"id": "w1", "url": "https://x.example", "watched": [], "domains": ["repo"], "disabled": False}

faces = pytest.mark.parametrize("face", CLIENT_TYPES)


def who(hub: Any) -> Any:
    return hub.whoami()


def make(hub: Any) -> Any:
    return hub.create_webhook("https://x.example", watched=[{"type": "user", "name": "ada"}])


def endless(head: bytes, piece: bytes) -> Callable[[socket.socket, SeenRequest], None]:
    def write(visitor: socket.socket, _: SeenRequest) -> None:
        visitor.sendall(head)
        while True:
            visitor.sendall(piece)

    return write


def silent(visitor: socket.socket, _: SeenRequest) -> None:
    """Until the other side gives up."""
    visitor.recv(1)


JSON_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

MISDEEDS: dict[str, tuple[ScriptedResponse, type[Exception], str]] = {
    "garbage": (
        b"\x00\xff\xfe garbage\r\n\r\n",
        errors.UnexpectedResponse,
        "did not answer with valid HTTP",
    ),
    "not a word": (b"", errors.ConnectionLost, "was lost"),
    "a reset": (reset, errors.ConnectionLost, "was lost"),
    "half a body": (JSON_HEAD + b'Content-Length: 100\r\n\r\n{"na', errors.ConnectionLost, "was lost"),
    "half a chunk": (
        JSON_HEAD + b"Transfer-Encoding: chunked\r\n\r\nff\r\nabc",
        errors.ConnectionLost,
        "was lost",
    ),
    "endless headers": (
        endless(b"HTTP/1.1 200 OK\r\n", b"X-More: " + b"y" * 1000 + b"\r\n"),
        errors.UnexpectedResponse,
        "did not answer with valid HTTP",
    ),
    "an endless body": (endless(JSON_HEAD + b"\r\n[", b"1," * 32_768), errors.UnexpectedResponse, "more than"),
    "a page": (
        http_response(200, b"<h1>hi</h1>", content_type="text/html"),
        errors.UnexpectedResponse,
        "address of a hub",
    ),
    "no type": (http_response(200, b"{}"), errors.UnexpectedResponse, "no content type"),
    "no JSON": (http_response(200, b"{", content_type="application/json"), errors.UnexpectedResponse, "cannot be read"),
    "deep JSON": (
        http_response(200, b"[" * 200_000, content_type="application/json"),
        errors.UnexpectedResponse,
        "cannot be read",
    ),
    "another shape": (json_response(200, [1]), errors.UnexpectedResponse, "WhoAmI"),
    "a missing member": (json_response(200, {**ME, "name": None}), errors.UnexpectedResponse, "WhoAmI.name"),
    "packed": (
        http_response(200, gzip.compress(b"{}"), content_type="application/json", content_encoding="gzip"),
        errors.UnexpectedResponse,
        "compressed",
    ),
    "a failure": (http_response(500, b"<h1>oops</h1>", content_type="text/html"), errors.HubFailure, "status 500"),
    "too often": (json_response(429, {"error": "Slow down."}, retry_after="3600"), errors.RateLimited, "Slow down"),
    "away": (json_response(503, {"error": "Back soon."}, retry_after="3600"), errors.HubFailure, "Back soon"),
    "an impossible date": (
        json_response(403, {"error": "No."}, retry_after="Mon, 01 Jan 99999999999 00:00:00 GMT"),
        errors.Forbidden,
        "No.",
    ),
    "a circle": (http_response(302, location="/api/whoami-v2"), errors.UnexpectedResponse, "redirected too often"),
    "nowhere": (
        http_response(302, location="http://[::1"),
        errors.UnexpectedResponse,
        "did not answer with valid HTTP",
    ),
    "a name in an address": (
        http_response(307, location="http://ada:pw@127.0.0.1/"),
        errors.UnexpectedResponse,
        "invalid address",
    ),
}


@faces
@pytest.mark.parametrize("misdeed", MISDEEDS)
def test_bad_response_raises_a_clear_exception(face: Any, misdeed: str, tmp_path: Path) -> None:
    given, expected, says = MISDEEDS[misdeed]
    with run_hostile_server(given) as server, pytest.raises(expected) as caught:
        call_with(face, server.url, who, tmp_path)
    assert type(caught.value) is expected
    assert says in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_time_that_does_not_exist_in_utc_is_rejected(tmp_path: Path) -> None:
    webhook = {**WEBHOOK, "lastTriggerAt": "0001-01-01T00:00:00+01:00"}
    with (
        run_hostile_server(json_response(200, [webhook])) as server,
        pytest.raises(errors.UnexpectedResponse, match="lastTriggerAt"),
    ):
        call_with(CLIENT_TYPES[0], server.url, lambda hub: hub.list_webhooks(), tmp_path)


@faces
def test_missing_response_times_out(face: Any, tmp_path: Path) -> None:
    with run_hostile_server(silent) as server, pytest.raises(errors.TimedOut):
        call_with(face, server.url, who, tmp_path, timeout=0.3)


@faces
def test_slow_body_has_a_deadline(face: Any, tmp_path: Path) -> None:
    def drip(visitor: socket.socket, _: SeenRequest) -> None:
        visitor.sendall(JSON_HEAD + b"\r\n")
        visitor.settimeout(0.05)
        while True:
            try:
                if not visitor.recv(1):
                    return
            except TimeoutError:
                visitor.sendall(b" ")

    with run_hostile_server(drip) as server, pytest.raises(errors.TimedOut):
        call_with(face, server.url, who, tmp_path, timeout=0.3)


@faces
def test_unreachable_hub_raises_unreachable(face: Any, tmp_path: Path) -> None:
    with run_hostile_server(b"") as server:
        server.close()
        with pytest.raises(errors.Unreachable, match="cannot be reached"):
            call_with(face, server.url, who, tmp_path)


@faces
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_to_another_host_is_rejected(face: Any, status: int, tmp_path: Path) -> None:
    with (
        run_hostile_server(json_response(200, ME)) as other,
        run_hostile_server(http_response(status, location=f"{other.url}/api")) as server,
    ):
        with pytest.raises(errors.UnsafeRedirect):
            call_with(face, server.url, who, tmp_path)
        with pytest.raises(errors.UnsafeRedirect):
            call_with(face, server.url, make, tmp_path)
        assert server.seen[0].headers["authorization"] == f"Bearer {TOKEN}"
        assert other.seen == []


def test_redirect_on_the_same_host_is_followed_with_the_token(tmp_path: Path) -> None:
    with run_hostile_server(
        http_response(307, location="/api/elsewhere"), json_response(200, {"webhook": WEBHOOK})
    ) as server:
        made = call_with(CLIENT_TYPES[0], server.url, make, tmp_path)
    assert made.id == "w1"
    assert [(seen.method, seen.target) for seen in server.seen][1] == ("POST", "/api/elsewhere")
    assert server.seen[1].headers["authorization"] == f"Bearer {TOKEN}"
    assert server.seen[0].body == server.seen[1].body != b""


def test_the_next_page_is_not_fetched_from_another_host(tmp_path: Path) -> None:
    with run_hostile_server(json_response(200, [])) as other:
        page = json_response(200, [], link=f'<{other.url}/api>; rel="next"')
        first = json_response(200, [{"id": "ada/x"}], link=f'<{other.url}/api>; rel="next"')
        with run_hostile_server(first, page) as server, pytest.raises(errors.UnexpectedResponse, match="another host"):
            call_with(CLIENT_TYPES[0], server.url, lambda hub: hub.list_repos(), tmp_path)
        assert other.seen == []


def test_messages_of_the_hub_are_sanitized_for_terminals(tmp_path: Path) -> None:
    text = "\x1b[2Jgone\r\n\u202eevil\x07"
    with run_hostile_server(json_response(403, {"error": text})) as server, pytest.raises(errors.Forbidden) as caught:
        call_with(CLIENT_TYPES[0], server.url, who, tmp_path)
    assert str(caught.value) == "[2Jgone evil"


@pytest.mark.parametrize("token", ["hf_a\r\nX-Evil: 1", "hf_ä", "", "two words"])
def test_token_with_line_breaks_is_rejected(token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="not a token"):
        call_with(CLIENT_TYPES[0], "http://127.0.0.1:1", who, tmp_path, token=token or "\n")


@pytest.mark.parametrize(
    "endpoint", ["ftp://x", "http://", "https://hub.example/path", "http://a:b@hub", "hub.example"]
)
def test_endpoint_must_be_an_origin(endpoint: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        call_with(CLIENT_TYPES[0], endpoint, who, tmp_path)


@faces
def test_unusable_proxy_is_named_in_the_error(face: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "gopher://127.0.0.1:1")
    with pytest.raises(errors.Unreachable, match="proxy in the environment"):
        call_with(face, "http://hub.example", who, tmp_path, retries=3)
