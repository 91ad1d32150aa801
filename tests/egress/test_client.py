"""The egress client against misbehaving servers. Deadlines are the caller's, so the tests use short ones."""

import asyncio
import gzip
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import uvloop
from tests.bed.blocking import run_blocking
from tests.bed.processes import free_port
from tests.egress.farend import Names, answering, certificate_for, read_request, serving, silent

from hubgate.server.egress.client import Egress, request_head
from hubgate.server.egress.connection import LONGEST_ROUND_TRIP, MAX_HEAD_BYTES
from hubgate.server.egress.resolve import Unreachable
from hubgate.server.egress.target import parse_target

LOOPBACK = [ip_network("127.0.0.0/8")]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CAP = 1000


async def get(egress: Egress, url: str, seconds: float = 20.0, cap: int = CAP) -> tuple[int, bytes]:
    """Fails if the deadline is exceeded."""
    async with asyncio.timeout(seconds + 60):
        answer = await egress.get(url, {}, seconds=seconds, cap=cap)
    return answer.status, answer.body


async def test_request_is_sent_as_given() -> None:
    seen: list[bytes] = []
    egress = Egress(LOOPBACK, resolve=Names({"hook.example": [["127.0.0.1"]]}))
    with serving(answering(OK, seen)) as server:
        target = parse_target(f"http://hook.example:{server.port}/a?b=c")
        request = request_head("POST", target, {"X-One": "1"}) + b"Content-Length: 2\r\n\r\n{}"
        answer = await egress.send(target, request, seconds=60, cap=CAP)
        assert (answer.status, answer.body, answer.header("content-length")) == (200, b"ok", "2")
    egress.close()
    assert seen == [
        b"POST /a?b=c HTTP/1.1\r\nHost: hook.example:%d\r\nX-One: 1\r\n"
        b"Accept-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}" % server.port
    ]


async def test_tls_connects_to_the_checked_address_with_the_host_name(tmp_path: Path) -> None:
    for_server, for_client = certificate_for("hook.example", tmp_path)
    egress = Egress(LOOPBACK, resolve=Names({"hook.example": [["127.0.0.1"]]}), tls=for_client)
    with serving(answering(OK), tls=for_server) as server:
        assert await get(egress, f"https://hook.example:{server.port}/") == (200, b"ok")
        assert server.names == ["hook.example"]
    egress.close()


async def test_certificate_for_another_name_is_rejected(tmp_path: Path) -> None:
    for_server, for_client = certificate_for("other.example", tmp_path)
    egress = Egress(LOOPBACK, resolve=Names({"hook.example": [["127.0.0.1"]]}), tls=for_client)
    with serving(answering(OK), tls=for_server) as server, pytest.raises(Unreachable):
        await get(egress, f"https://hook.example:{server.port}/")
    egress.close()


async def test_hanging_tls_handshake_ends_at_the_deadline() -> None:
    egress = Egress(LOOPBACK)
    with serving(silent) as server, pytest.raises(Unreachable):
        await get(egress, f"https://127.0.0.1:{server.port}/", seconds=0.5)
    egress.close()


async def test_rebinding_between_two_requests_never_reaches_the_private_address() -> None:
    """W9: each request resolves once and connects to the checked address."""
    names = Names({"hook.example": [["127.0.0.1"], ["10.0.0.1"]]})
    egress = Egress(LOOPBACK, resolve=names)
    with serving(answering(OK)) as server:
        url = f"http://hook.example:{server.port}/"
        assert await get(egress, url) == (200, b"ok")
        with pytest.raises(Unreachable) as refused:
            await get(egress, url)
        assert "blocked" in refused.value.cause
        assert server.connections == 1
    assert names.asked == ["hook.example"] * 2
    egress.close()


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["1.1.1.1", "127.0.0.1"], ["::ffff:127.0.0.1"], []])
async def test_one_blocked_address_blocks_the_host(addresses: list[str]) -> None:
    egress = Egress(resolve=Names({"hook.example": [addresses]}))
    with serving(answering(OK)) as server:
        with pytest.raises(Unreachable) as refused:
            await get(egress, f"http://hook.example:{server.port}/")
        assert server.connections == 0
    assert str(refused.value) == "No answer from the address."
    egress.close()


async def test_blocked_refused_unknown_and_slow_look_the_same() -> None:
    """W18."""
    egress = Egress(LOOPBACK, resolve=Names({"private.example": [["10.0.0.1"]]}))
    port = free_port()
    with serving(silent) as slow:
        urls = [
            "http://private.example/",
            f"http://127.0.0.1:{port}/",
            "http://nowhere.example/",
            f"http://127.0.0.1:{slow.port}/",
        ]
        texts = set()
        for url in urls:
            with pytest.raises(Unreachable) as failure:
                await get(egress, url, seconds=0.5)
            texts.add(str(failure.value))
    assert texts == {"No answer from the address."}
    egress.close()


def dripping(head: bytes, drop: bytes) -> object:
    def behave(peer: socket.socket) -> None:
        read_request(peer)
        peer.sendall(head)
        while True:
            peer.sendall(drop)
            time.sleep(0.05)

    return behave


@pytest.mark.parametrize(
    "behave",
    [
        dripping(b"HTTP/1.1 200 OK\r\n", b"x"),
        dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n", b"x"),
        dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["headers", "body", "interim answers"],
)
async def test_slow_answer_ends_at_the_deadline(behave: object) -> None:
    """W19, W20, O29."""
    egress = Egress(LOOPBACK)
    with serving(behave) as server:  # type: ignore[arg-type]
        started = time.monotonic()
        with pytest.raises(Unreachable):
            await get(egress, f"http://127.0.0.1:{server.port}/", seconds=0.5)
        assert time.monotonic() - started < 30
    egress.close()


def endless(head: bytes, piece: bytes) -> object:
    def behave(peer: socket.socket) -> None:
        read_request(peer)
        peer.sendall(head)
        while True:
            peer.sendall(piece)

    return behave


@pytest.mark.parametrize(
    "head", [b"Content-Length: 10000000000\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n"]
)
async def test_endless_body_is_cut_off_at_the_limit(head: bytes) -> None:
    """W21, O28."""
    piece = b"10\r\n0123456789abcdef\r\n" if b"chunked" in head else b"0123456789abcdef" * 64
    egress = Egress(LOOPBACK)
    with serving(endless(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n", piece)) as server:  # type: ignore[arg-type]
        answer = await egress.get(f"http://127.0.0.1:{server.port}/", {}, seconds=60, cap=CAP)
        assert (len(answer.body), answer.truncated) == (CAP, True)
    egress.close()


@pytest.mark.parametrize("piece", [b"X-Filler: " + b"x" * 1000 + b"\r\n", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 20])
async def test_endless_headers_and_interim_answers_are_limited(piece: bytes) -> None:
    """W23."""
    start = b"" if piece.startswith(b"HTTP") else b"HTTP/1.1 200 OK\r\n"
    egress = Egress(LOOPBACK)
    with serving(endless(start, piece)) as server:  # type: ignore[arg-type]
        with pytest.raises(Unreachable) as failure:
            await get(egress, f"http://127.0.0.1:{server.port}/")
        assert f"{MAX_HEAD_BYTES:,}" in failure.value.cause
    egress.close()


async def test_compressed_answer_is_not_inflated() -> None:
    """W22: a compression bomb stays compressed."""
    bomb = gzip.compress(b"\0" * 10_000_000)[:900]
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    egress = Egress(LOOPBACK)
    with serving(answering(head + bomb)) as server:
        assert await get(egress, f"http://127.0.0.1:{server.port}/") == (200, bomb)
    egress.close()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_redirects_are_not_followed(status: int) -> None:
    """W11, O27."""
    answer = b"HTTP/1.1 %d Go\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n" % status
    egress = Egress(LOOPBACK)
    with serving(answering(answer)) as server:
        assert await get(egress, f"http://127.0.0.1:{server.port}/") == (status, b"")
        assert server.connections == 1
    egress.close()


async def test_connections_are_reused_and_stale_ones_replaced() -> None:
    is_closed = threading.Event()

    def twice(peer: socket.socket) -> None:
        for _ in range(2):
            if read_request(peer):
                peer.sendall(OK)
        peer.close()
        is_closed.set()

    egress = Egress(LOOPBACK)
    with serving(twice) as server:
        url = f"http://127.0.0.1:{server.port}/"
        for _ in range(2):
            # The end of the second connection is noticed before the next request, that of the others during it.
            await asyncio.sleep(0.05)
            for _ in range(2):
                assert await get(egress, url) == (200, b"ok")
            assert is_closed.wait(60)
            is_closed.clear()
            for _ in range(2):
                assert await get(egress, url) == (200, b"ok")
            assert is_closed.wait(60)
            is_closed.clear()
        assert server.connections == 4
    egress.close()


async def test_request_that_may_have_been_processed_is_not_sent_again() -> None:
    """A receiver dies during a request on a reused connection: the caller decides whether to repeat it."""
    seen: list[bytes] = []

    def dying(peer: socket.socket) -> None:
        seen.append(read_request(peer))
        peer.sendall(OK)
        seen.append(read_request(peer))
        threading.Event().wait(2 * LONGEST_ROUND_TRIP)

    egress = Egress(LOOPBACK)
    with serving(dying) as server:
        url = f"http://127.0.0.1:{server.port}/"
        assert await get(egress, url) == (200, b"ok")
        with pytest.raises(Unreachable):
            await get(egress, url)
        assert (server.connections, len(seen)) == (1, 2)
    egress.close()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("head", [b"HTTP/1.0 200 OK", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity"])
def test_body_that_ends_with_the_connection_is_accepted(
    run: Callable[[Coroutine[Any, Any, None]], None], scheme: str, head: bytes, tmp_path: Path
) -> None:
    """In both kinds of event loop that the hub uses. Many servers close TLS without a close_notify."""
    for_server, for_client = certificate_for("hook.example", tmp_path)

    def behave(peer: socket.socket) -> None:
        read_request(peer)
        peer.sendall(head + b"\r\n\r\nall of it")

    async def ask(port: int) -> None:
        egress = Egress(LOOPBACK, resolve=Names({"hook.example": [["127.0.0.1"]]}), tls=for_client)
        assert await get(egress, f"{scheme}://hook.example:{port}/") == (200, b"all of it")
        egress.close()

    with serving(behave, tls=for_server if scheme == "https" else None) as server:
        run_blocking(ask(server.port), run)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip,Chunked \r\n\r\n5\r\nshor",
        b"HTTP/1.1 101 Up\r\n\r\n",
        b"HTTP/1.1 000 x\r\nContent-Length: 5000\r\n\r\n" + b"y" * 5000,
    ],
)
async def test_malformed_answer_is_unreachable(answer: bytes) -> None:
    def behave(peer: socket.socket) -> None:
        read_request(peer)
        peer.sendall(answer)

    egress = Egress(LOOPBACK)
    with serving(behave) as server, pytest.raises(Unreachable) as failure:
        await get(egress, f"http://127.0.0.1:{server.port}/")
    assert "no complete answer within" not in failure.value.cause, "it is known at once"
    egress.close()


async def test_second_answer_does_not_reach_the_next_caller() -> None:
    egress = Egress(LOOPBACK)
    poisoned = OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
    with serving(answering(poisoned)) as server:
        url = f"http://127.0.0.1:{server.port}/"
        assert [await get(egress, url) for _ in range(3)] == [(200, b"ok")] * 3
        assert server.connections == 3
    egress.close()


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """W26."""
    with serving(answering(OK)) as proxy, serving(answering(OK)) as server:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        egress = Egress(LOOPBACK)
        await get(egress, f"http://127.0.0.1:{server.port}/")
        egress.close()
        assert (proxy.connections, server.connections) == (0, 1)


def tunnelling(asked: list[bytes]) -> object:
    """A proxy that accepts CONNECT."""

    def behave(peer: socket.socket) -> None:
        asked.append(read_request(peer))
        host, port = asked[-1].split(b" ")[1].decode().rsplit(":", 1)
        with socket.create_connection((host, int(port))) as beyond:
            peer.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=_pump, args=(beyond, peer), daemon=True)
            back.start()
            _pump(peer, beyond)

    return behave


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_configured_proxy_gets_the_checked_address(tmp_path: Path, scheme: str) -> None:
    for_server, for_client = certificate_for("hook.example", tmp_path)
    asked: list[bytes] = []
    tls = for_server if scheme == "https" else None
    with serving(tunnelling(asked)) as proxy, serving(answering(OK), tls=tls) as server:  # type: ignore[arg-type]
        names = Names({"hook.example": [["127.0.0.1"]]})
        egress = Egress(LOOPBACK, f"http://u:p%40@127.0.0.1:{proxy.port}", resolve=names, tls=for_client)
        assert await get(egress, f"{scheme}://hook.example:{server.port}/") == (200, b"ok")
        egress.close()
    assert asked[0].startswith(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n" % server.port)
    assert b"Proxy-Authorization: Basic dTpwQA==\r\n" in asked[0]


async def test_slow_lookups_end_at_their_limit_and_delay_nobody() -> None:
    """W25."""

    async def resolve(host: str) -> list[object]:
        if host == "slow.example":
            await asyncio.Event().wait()
        return await Names({"quick.example": [["127.0.0.1"]]})(host)  # type: ignore[return-value]

    egress = Egress(LOOPBACK, resolve=resolve)  # type: ignore[arg-type]
    with serving(answering(OK)) as server:
        slow = asyncio.create_task(get(egress, f"http://slow.example:{server.port}/"))
        assert await get(egress, f"http://quick.example:{server.port}/") == (200, b"ok")
        assert not slow.done()
        slow.cancel()
        with pytest.raises(Unreachable) as failure:
            await get(egress, f"http://slow.example:{server.port}/")
    assert "was not resolved within" in failure.value.cause
    egress.close()


async def test_hub_itself_is_not_called() -> None:
    """W27."""
    with serving(answering(OK)) as server:
        own = frozenset({("hub.example", server.port), ("127.0.0.1", server.port)})
        egress = Egress(LOOPBACK, own=own, resolve=Names({"alias.example": [["127.0.0.1"]]}))
        for host in ("hub.example", "127.0.0.1", "alias.example"):
            with pytest.raises(Unreachable):
                await get(egress, f"http://{host}:{server.port}/")
        assert server.connections == 0
        egress.close()


async def test_line_break_in_a_header_is_rejected() -> None:
    egress = Egress(LOOPBACK)
    with pytest.raises(ValueError, match="cannot be sent"):
        await egress.get("http://127.0.0.1:9999/", {"X-A": "b\r\nX-C: d"}, seconds=1, cap=1)
    egress.close()
