"""Invalid or hostile responses of a hub raise clear exceptions, and the token is not sent to other hosts."""

import gzip
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.bed.hostile import FACES, TOKEN, Answer, Seen, answer, as_json, hostile, reset, through

from hubgate.client import errors

ME = {"id": "0" * 24, "name": "ada", "type": "user", "orgs": [], "auth": {"type": "oauth"}}
WEBHOOK = {"id": "w1", "url": "https://x.example", "watched": [], "domains": ["repo"], "disabled": False}

faces = pytest.mark.parametrize("face", FACES)


def who(hub: Any) -> Any:
    return hub.whoami()


def make(hub: Any) -> Any:
    return hub.create_webhook("https://x.example", watched=[{"type": "user", "name": "ada"}])


def endless(head: bytes, piece: bytes) -> Callable[[socket.socket, Seen], None]:
    def write(visitor: socket.socket, _: Seen) -> None:
        visitor.sendall(head)
        while True:
            visitor.sendall(piece)

    return write


def silent(visitor: socket.socket, _: Seen) -> None:
    """Until the other side gives up."""
    visitor.recv(1)


JSON_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

MISDEEDS: dict[str, tuple[Answer, type[Exception], str]] = {
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
    "a page": (answer(200, b"<h1>hi</h1>", content_type="text/html"), errors.UnexpectedResponse, "address of a hub"),
    "no type": (answer(200, b"{}"), errors.UnexpectedResponse, "no content type"),
    "no JSON": (answer(200, b"{", content_type="application/json"), errors.UnexpectedResponse, "cannot be read"),
    "deep JSON": (
        answer(200, b"[" * 200_000, content_type="application/json"),
        errors.UnexpectedResponse,
        "cannot be read",
    ),
    "another shape": (as_json(200, [1]), errors.UnexpectedResponse, "WhoAmI"),
    "a missing member": (as_json(200, {**ME, "name": None}), errors.UnexpectedResponse, "WhoAmI.name"),
    "packed": (
        answer(200, gzip.compress(b"{}"), content_type="application/json", content_encoding="gzip"),
        errors.UnexpectedResponse,
        "compressed",
    ),
    "a failure": (answer(500, b"<h1>oops</h1>", content_type="text/html"), errors.HubFailure, "status 500"),
    "too often": (as_json(429, {"error": "Slow down."}, retry_after="3600"), errors.RateLimited, "Slow down"),
    "away": (as_json(503, {"error": "Back soon."}, retry_after="3600"), errors.HubFailure, "Back soon"),
    "a circle": (answer(302, location="/api/whoami-v2"), errors.UnexpectedResponse, "redirected too often"),
    "nowhere": (answer(302, location="http://[::1"), errors.UnexpectedResponse, "did not answer with valid HTTP"),
    "a name in an address": (
        answer(307, location="http://ada:pw@127.0.0.1/"),
        errors.UnexpectedResponse,
        "invalid address",
    ),
}


@faces
@pytest.mark.parametrize("misdeed", MISDEEDS)
def test_bad_response_raises_a_clear_exception(face: Any, misdeed: str, tmp_path: Path) -> None:
    given, expected, says = MISDEEDS[misdeed]
    with hostile(given) as server, pytest.raises(expected) as caught:
        through(face, server.url, who, tmp_path)
    assert type(caught.value) is expected
    assert says in str(caught.value)
    assert TOKEN not in str(caught.value)


@faces
def test_missing_response_times_out(face: Any, tmp_path: Path) -> None:
    with hostile(silent) as server, pytest.raises(errors.TimedOut):
        through(face, server.url, who, tmp_path, timeout=0.3)


@faces
def test_slow_body_has_a_deadline(face: Any, tmp_path: Path) -> None:
    def drip(visitor: socket.socket, _: Seen) -> None:
        visitor.sendall(JSON_HEAD + b"\r\n")
        visitor.settimeout(0.05)
        while True:
            try:
                if not visitor.recv(1):
                    return
            except TimeoutError:
                visitor.sendall(b" ")

    with hostile(drip) as server, pytest.raises(errors.TimedOut):
        through(face, server.url, who, tmp_path, timeout=0.3)


@faces
def test_unreachable_hub_raises_unreachable(face: Any, tmp_path: Path) -> None:
    with hostile(b"") as server:
        server.close()
        with pytest.raises(errors.Unreachable, match="cannot be reached"):
            through(face, server.url, who, tmp_path)


@faces
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_to_another_host_is_rejected(face: Any, status: int, tmp_path: Path) -> None:
    with hostile(as_json(200, ME)) as other, hostile(answer(status, location=f"{other.url}/api")) as server:
        with pytest.raises(errors.UnsafeRedirect):
            through(face, server.url, who, tmp_path)
        with pytest.raises(errors.UnsafeRedirect):
            through(face, server.url, make, tmp_path)
        assert server.seen[0].headers["authorization"] == f"Bearer {TOKEN}"
        assert other.seen == []


def test_redirect_on_the_same_host_is_followed_with_the_token(tmp_path: Path) -> None:
    with hostile(answer(307, location="/api/elsewhere"), as_json(200, {"webhook": WEBHOOK})) as server:
        made = through(FACES[0], server.url, make, tmp_path)
    assert made.id == "w1"
    assert [(seen.method, seen.target) for seen in server.seen][1] == ("POST", "/api/elsewhere")
    assert server.seen[1].headers["authorization"] == f"Bearer {TOKEN}"
    assert server.seen[0].body == server.seen[1].body != b""


def test_the_next_page_is_not_fetched_from_another_host(tmp_path: Path) -> None:
    with hostile(as_json(200, [])) as other:
        page = as_json(200, [], link=f'<{other.url}/api>; rel="next"')
        first = as_json(200, [{"id": "ada/x"}], link=f'<{other.url}/api>; rel="next"')
        with hostile(first, page) as server, pytest.raises(errors.UnexpectedResponse, match="another host"):
            through(FACES[0], server.url, lambda hub: hub.list_repos(), tmp_path)
        assert other.seen == []


def test_messages_of_the_hub_are_sanitized_for_terminals(tmp_path: Path) -> None:
    text = "\x1b[2Jgone\r\n\u202eevil\x07"
    with hostile(as_json(403, {"error": text})) as server, pytest.raises(errors.Forbidden) as caught:
        through(FACES[0], server.url, who, tmp_path)
    assert str(caught.value) == "[2Jgone evil"


@pytest.mark.parametrize("token", ["hf_a\r\nX-Evil: 1", "hf_ä", "", "two words"])
def test_token_with_line_breaks_is_rejected(token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="not a token"):
        through(FACES[0], "http://127.0.0.1:1", who, tmp_path, token=token or "\n")


@pytest.mark.parametrize(
    "endpoint", ["ftp://x", "http://", "https://hub.example/path", "http://a:b@hub", "hub.example"]
)
def test_endpoint_must_be_an_origin(endpoint: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        through(FACES[0], endpoint, who, tmp_path)


@faces
def test_unusable_proxy_is_named_in_the_error(face: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "gopher://127.0.0.1:1")
    with pytest.raises(errors.Unreachable, match="proxy in the environment"):
        through(face, "http://hub.example", who, tmp_path, retries=3)
