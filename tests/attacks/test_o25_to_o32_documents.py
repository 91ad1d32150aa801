"""O25-O32, O63: apps identified by the URL of their metadata document."""

import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from tests.bed.apps import approve, pkce_pair, redirect_parameters
from tests.bed.concurrency import run_concurrently
from tests.bed.engines import Engine, settings_for
from tests.bed.people import browser_of, create_user
from tests.bed.running_hub import RunningHub, run_hub
from tests.egress.dialled import dialled
from tests.egress.farend import Names, Server, answering, certificate_for, read_request, serving

from hubgate.server.egress.client import Egress

pytestmark = pytest.mark.one_engine

REDIRECT = "https://app.example/callback"
LOOPBACK = [ip_network("127.0.0.0/8")]
LENIENT = {"egress_allow": "127.0.0.0/8", "cimd_allow_http_loopback": "true"}


@pytest.fixture
def lenient(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    """Development mode: documents may be fetched by http from loopback addresses."""
    with run_hub(settings_for(engine.fresh_url(), tmp_path, **LENIENT)) as hub:
        yield hub


@pytest.fixture
def far_end() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def described(url: str, **members: Any) -> bytes:
    document = {
        "client_id": url,
        "client_name": "Self-made",
        "redirect_uris": [REDIRECT],
        "token_endpoint_auth_method": "none",
        **members,
    }
    return json.dumps({name: value for name, value in document.items() if value is not None}).encode()


def json_answer(body: bytes, status: str = "200 OK", extra: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
    return head.encode() + body


class App:
    """An app whose document is served by a raw server and can be changed at any time."""

    def __init__(self, stack: ExitStack, *, slow: bool = False, **members: Any) -> None:
        self._slow = slow
        self.server: Server = stack.enter_context(serving(self._behave))
        self.url = f"http://127.0.0.1:{self.server.port}/app"
        self.answer = json_answer(described(self.url, **members))
        self.fetches = 0

    def _behave(self, peer: socket.socket) -> None:
        while read_request(peer):
            self.fetches += 1
            if self._slow:
                time.sleep(1)
            peer.sendall(self.answer)


def address(client_id: str, **parameters: str) -> str:
    _, challenge = pkce_pair()
    asked = {
        "client_id": client_id,
        "redirect_uri": REDIRECT,
        "response_type": "code",
        "scope": "openid profile",
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        **parameters,
    }
    return "/oauth/authorize?" + urlencode(asked)


ENDLESS = 64 * 1024 * 1024


def status_of(hub: RunningHub, client_id: str) -> int:
    with hub.client() as visitor:
        return visitor.get(address(client_id)).status_code


def test_app_signs_in_by_its_metadata_document(lenient: RunningHub, far_end: ExitStack) -> None:
    app, ada = App(far_end), create_user(lenient, "ada")
    verifier, challenge = pkce_pair()
    with browser_of(lenient, ada) as browser:
        sent = approve(browser, address(app.url, code_challenge=challenge))
    form = {"grant_type": "authorization_code", "code": redirect_parameters(sent)["code"], "redirect_uri": REDIRECT}
    form |= {"client_id": app.url, "code_verifier": verifier}
    body = httpx.post(f"{lenient.url}/oauth/token", data=form).json()
    assert body["scope"] == "openid profile"
    assert "refresh_token" in body
    assert app.fetches == 1


@pytest.mark.parametrize(
    "target",
    [
        *(
            "127.0.0.1",
            "10.0.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "::1",
            "::ffff:127.0.0.1",
            "fd00::1",
        ),
        *("::ffff:127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::a00:1", "2002:7f00:1::", "4000::1"),
    ],
)
def test_o25_private_addresses_are_never_connected_to(
    engine: Engine, tmp_path: Path, far_end: ExitStack, target: str
) -> None:
    server = far_end.enter_context(serving(answering(b"")))
    names = Names({"app.example": [[target]]})
    settings = settings_for(engine.fresh_url(), tmp_path)
    with run_hub(settings, Egress(resolve=names)) as hub, dialled() as dials:
        assert status_of(hub, f"https://app.example:{server.port}/app") == 400
        assert names.asked == ["app.example"]
    assert server.connections == 0
    assert server.port not in {port for _, port in dials}


def test_o25_http_and_loopback_are_allowed_in_development_only(hub: RunningHub, far_end: ExitStack) -> None:
    app = App(far_end)
    assert status_of(hub, app.url) == 400
    assert status_of(hub, app.url.replace("http:", "https:")) == 400
    assert app.server.connections == 0


def test_o26_name_is_resolved_once_and_its_certificate_is_verified(
    engine: Engine, tmp_path: Path, far_end: ExitStack
) -> None:
    for_server, for_client = certificate_for("app.example", tmp_path)
    seen: list[bytes] = []
    server = far_end.enter_context(
        serving(answering(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", seen), tls=for_server)
    )
    # A second lookup would answer with a private address; there is none.
    names = Names({"app.example": [["127.0.0.1"], ["169.254.169.254"]], "other.example": [["127.0.0.1"]]})
    egress = Egress(LOOPBACK, resolve=names, tls=for_client)
    with run_hub(settings_for(engine.fresh_url(), tmp_path), egress) as hub:
        assert status_of(hub, f"https://app.example:{server.port}/app") == 400
        assert names.asked == ["app.example"]
        assert len(seen) == 1
        assert seen[0].startswith(b"GET /app HTTP/1.1\r\nHost: app.example:")
        assert status_of(hub, f"https://other.example:{server.port}/app") == 400
        assert len(seen) == 1, "a certificate for another name is no answer"


@pytest.mark.parametrize(
    "status", ["301 Moved", "302 Found", "307 Temporary", "204 No", "404 No", "500 Broken", "201 Made"]
)
def test_o27_only_status_200_is_accepted(lenient: RunningHub, far_end: ExitStack, status: str) -> None:
    app = App(far_end)
    good = app.answer
    app.answer = json_answer(described(app.url), status, f"Location: {app.url}/good\r\n")
    assert status_of(lenient, app.url) == 400
    app.answer = good
    assert status_of(lenient, app.url) == 303, "an error is never kept"


CHUNK = b"1000\r\n" + b" " * 4096 + b"\r\n"
TRAILER = b"X-T: " + b"a" * 4096 + b"\r\n"


@pytest.mark.parametrize(
    ("head", "begin", "more"),
    [
        ("Content-Length: 100000000\r\n", b"", b" " * 4096),
        ("Transfer-Encoding: chunked\r\n", b"", CHUNK),
        ("Transfer-Encoding: chunked\r\n", b'7\r\n{"x":1}\r\n0\r\n', TRAILER),
        ("Transfer-Encoding: chunked\r\n", b'7\r\n{"x":1}\r\n0\r\nX-T: ', b"a" * 4096),
        ("Content-Encoding: gzip\r\nContent-Length: 100000000\r\n", gzip.compress(b" " * 10_000_000), b"\0" * 4096),
    ],
    ids=["length", "chunks", "trailers", "a trailer", "gzip"],
)
def test_o28_endless_document_is_cut_off(
    lenient: RunningHub, far_end: ExitStack, head: str, begin: bytes, more: bytes
) -> None:
    sent, ended = 0, threading.Event()

    def behave(peer: socket.socket) -> None:
        nonlocal sent
        read_request(peer)
        try:
            peer.sendall(f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{head}\r\n".encode() + begin)
            while sent < ENDLESS:
                peer.sendall(more)
                sent += len(more)
        finally:
            ended.set()

    server = far_end.enter_context(serving(behave))
    assert status_of(lenient, f"http://127.0.0.1:{server.port}/app") == 400
    assert ended.wait(60)
    # Socket buffers may have accepted a little more.
    assert sent < ENDLESS / 4


def test_o29_slow_document_is_cut_off_at_the_deadline(lenient: RunningHub, far_end: ExitStack) -> None:
    def behave(peer: socket.socket) -> None:
        read_request(peer)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10000\r\n\r\n")
        while True:
            peer.sendall(b" ")
            time.sleep(0.05)

    server: Server = far_end.enter_context(serving(behave))
    started = time.monotonic()
    assert status_of(lenient, f"http://127.0.0.1:{server.port}/app") == 400
    # The deadline is five seconds; the whole document would take five hundred.
    assert time.monotonic() - started < 50


@pytest.mark.parametrize(
    "members",
    [
        {"client_id": "https://other.example/app"},
        {"client_id": None},
        {"client_secret": "s"},
        {"token_endpoint_auth_method": "client_secret_basic"},
        {"token_endpoint_auth_method": None},
        {"token_endpoint_auth_method": None, "token_endpoint_auth_methods_supported": "none"},
        {
            "token_endpoint_auth_method": "private_key_jwt",
            "token_endpoint_auth_methods_supported": ["private_key_jwt"],
        },
        {"redirect_uris": []},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"redirect_uris": "https://app.example/callback"},
        {"client_name": ""},
        {"client_name": 7},
    ],
    ids=lambda members: ",".join(f"{name}={value}" for name, value in members.items()),
)
def test_o30_invalid_document_is_rejected(lenient: RunningHub, far_end: ExitStack, members: dict[str, Any]) -> None:
    app = App(far_end)
    good, app.answer = app.answer, json_answer(described(app.url, **members))
    assert status_of(lenient, app.url) == 400
    app.answer = good
    assert status_of(lenient, app.url) == 303, "not kept"


def test_document_that_supports_none_is_public_although_it_prefers_a_key(
    lenient: RunningHub, far_end: ExitStack
) -> None:
    app = App(
        far_end,
        token_endpoint_auth_method="private_key_jwt",
        token_endpoint_auth_methods_supported=["private_key_jwt", "none"],
        jwks_uri="https://x.example/jwks",
    )
    assert status_of(lenient, app.url) == 303


def test_unknown_members_and_grant_types_are_ignored(lenient: RunningHub, far_end: ExitStack) -> None:
    app = App(
        far_end, grant_types=["authorization_code", "urn:x:unknown"], foo={"bar": 1}, jwks_uri="https://x.example"
    )
    assert status_of(lenient, app.url) == 303


@pytest.mark.parametrize("path", ["", "/", "/a/../b", "/a/%2e%2e/b", "/./a", "/a#b"])
def test_invalid_client_id_urls_are_rejected(lenient: RunningHub, path: str) -> None:
    assert status_of(lenient, f"https://app.example{path}") == 400
    assert status_of(lenient, "https://user@app.example/app") == 400


def test_o31_concurrent_authorizations_fetch_the_document_once(lenient: RunningHub, far_end: ExitStack) -> None:
    """The host answers slowly, so that all requests need the document before it was received."""
    app = App(far_end, slow=True)
    with lenient.client() as visitor:
        rounds = [run_concurrently([lambda: visitor.get(address(app.url))] * 50) for _ in range(3)]
    assert {answer.status_code for answers in rounds for answer in answers} == {303}
    assert app.fetches == 1


def test_o31_document_is_fetched_once_for_all_processes(engine: Engine, tmp_path: Path, far_end: ExitStack) -> None:
    app, settings = App(far_end, slow=True), settings_for(engine.fresh_url(), tmp_path, **LENIENT)
    with run_hub(settings) as one, run_hub(settings) as two:
        answers = run_concurrently([partial(status_of, hub, app.url) for hub in (one, two)] * 5)
    assert set(answers) == {303}
    assert app.fetches == 1


def test_last_valid_copy_is_used_while_the_host_fails(lenient: RunningHub, far_end: ExitStack) -> None:
    """Neither a failing host nor a stranger who uses up the host's fetch limit takes an app out of service."""
    app = App(far_end)
    assert status_of(lenient, app.url) == 303
    lenient.clock.advance(2 * 3600)
    good, app.answer = app.answer, b"HTTP/1.1 503 Down\r\nContent-Length: 0\r\n\r\n"
    assert status_of(lenient, app.url) == 303
    for number in range(12):
        status_of(lenient, f"{app.url}/{number}")
    assert status_of(lenient, app.url) == 303
    lenient.clock.advance(24 * 3600)
    assert status_of(lenient, app.url) == 400, "but not for ever"
    app.answer = json_answer(b"{}")
    assert status_of(lenient, app.url) == 400
    app.answer = good
    assert status_of(lenient, app.url) == 303


@pytest.mark.parametrize(
    "text",
    [
        lambda document: document.decode().encode("utf-16"),
        lambda document: document[:-1] + b', "x": "\xed\xa0\x80"}',
        lambda document: document[:-1] + b', "client_name": "Twice"}',
        lambda document: document[:-1] + b', "x": NaN}',
    ],
    ids=["UTF-16", "a surrogate", "a member twice", "NaN"],
)
def test_ambiguous_json_document_is_rejected(
    lenient: RunningHub, far_end: ExitStack, text: Callable[[bytes], bytes]
) -> None:
    app = App(far_end)
    app.answer = json_answer(text(described(app.url)))
    assert status_of(lenient, app.url) == 400


def test_o32_and_o33_logo_is_not_loaded_and_name_is_escaped(lenient: RunningHub, far_end: ExitStack) -> None:
    app = App(far_end, client_name="Ev\u202eil <script>\u200b</script>", logo_uri="https://app.example/logo.svg")
    with browser_of(lenient, create_user(lenient, "ada")) as browser:
        page = browser.get(address(app.url)).text
    assert "logo.svg" not in page
    assert "<script>" not in page.replace('<script type="module"', "")
    assert "\u202e" not in page
    assert "\u200b" not in page
    assert "Evil &lt;script&gt;&lt;/script&gt;" in page


def test_o63_invalid_urls_of_one_host_are_fetched_ten_times_a_minute(lenient: RunningHub, far_end: ExitStack) -> None:
    app = App(far_end)
    app.answer = b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"
    with lenient.client() as visitor:
        answers = [visitor.get(address(f"{app.url}/{number}")) for number in range(60)]
    statuses = [answer.status_code for answer in answers]
    assert statuses[:10] == [400] * 10
    assert set(statuses[10:]) == {429}
    assert "retry-after" in answers[-1].headers
    assert app.fetches == 10
    with lenient.client() as visitor:
        for spelling in ("LOCALHOST", "localhost", "localhost."):
            other = app.url.replace("127.0.0.1", spelling)
            statuses = [visitor.get(address(f"{other}/{number}")).status_code for number in range(12)]
            assert set(statuses) <= {400, 429}
    assert app.fetches <= 20, "one host more, however it is spelled"
