"""W18-W25: receivers that refuse, hang, drip, never end or lie: each attempt ends in time and looks the same."""

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.bed.egress_hub import DEADLINE, LONG, OK, EgressHub, deliver, run_egress_hub
from tests.bed.processes import free_port
from tests.egress.farend import answering, certificate_for, read_request, serving, silent

from hubgate.server.egress.resolve import THREADS_PER_OWNER, THREADS_PER_SITE

NO_ANSWER = "No answer from the address."
ENDLESS = 64 * 1024 * 1024
# A busy machine needs this time beside the deadline. What the receivers below do takes longer.
LATEST = 30
Behaviour = Callable[[socket.socket], None]


@pytest.fixture
def here(sqlite_template: Path, tmp_path: Path) -> Iterator[EgressHub]:
    names = {"blocked.example": [["10.0.0.1"]], "ci.example": [["127.0.0.1"]], "empty.example": [[]]}
    with run_egress_hub(sqlite_template, tmp_path, names) as started:  # type: ignore[arg-type]
        yield started


def single_attempt(
    here: EgressHub, url: str, name: str = "tiny", seconds: float = DEADLINE
) -> tuple[dict[str, Any], float]:
    """The only attempt of a delivery to this server, and how long it took."""
    (webhook,) = here.watch(url)
    here.change(name)
    began = time.monotonic()
    deliver(here.hub, seconds)
    took = time.monotonic() - began
    told = here.last_delivery(webhook)
    here.ada.delete(f"/api/settings/webhooks/{webhook['id']}")
    (one,) = told["tries"]
    return {**one, "state": told["state"]}, took


def test_w18_blocked_refused_unknown_and_timed_out_look_the_same(here: EgressHub) -> None:
    """In words, in numbers, in how long the attempt takes and in when it is retried."""
    port = free_port()
    with serving(silent) as slow, serving(answering(b"\x15\x03\x01\x00\x02\x02\x28")) as other:
        places = [
            "http://blocked.example:8080/",
            f"http://127.0.0.1:{port}/",
            "http://nowhere.example/",
            "http://empty.example/",
            f"http://127.0.0.1:{slow.port}/",
            f"https://127.0.0.1:{slow.port}/",
            f"http://127.0.0.1:{other.port}/",
        ]
        found = [single_attempt(here, url, f"r{number}") for number, url in enumerate(places)]
    said = [{name: value for name, value in one.items() if name != "at"} for one, _ in found]
    silence = {"status": None, "error": NO_ANSWER, "response": "", "durationMs": int(DEADLINE * 1000)}
    assert said[0] == {**silence, "state": "retrying"}
    assert all(one == said[0] for one in said), said
    times = [took for _, took in found]
    assert min(times) >= DEADLINE
    assert max(times) < DEADLINE + LATEST, times


def dripping(head: bytes, drop: bytes) -> Behaviour:
    def behave(peer: socket.socket) -> None:
        read_request(peer)
        peer.sendall(head)
        while True:
            peer.sendall(drop)
            time.sleep(0.05)

    return behave


def deaf(peer: socket.socket) -> None:
    """Accepts the connection and reads nothing."""
    threading.Event().wait(2 * LATEST)


@pytest.mark.parametrize(
    ("line", "behave"),
    [
        ("W19", dripping(b"HTTP/1.1 200 OK\r\n", b"x")),
        ("W20", dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n", b"x")),
        ("W20", dripping(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n")),
        ("W23", dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n")),
        ("W19", silent),
        ("W19", deaf),
    ],
    ids=["headers", "body", "chunks", "interim answers", "silence", "deaf"],
)
def test_w19_w20_one_deadline_covers_the_whole_attempt(here: EgressHub, line: str, behave: Behaviour) -> None:
    with serving(behave) as server:
        one, took = single_attempt(here, f"http://127.0.0.1:{server.port}/")
        assert (one["status"], one["error"], one["state"]) == (None, NO_ANSWER, "retrying"), line
        assert took < DEADLINE + LATEST


def test_w19_reused_connection_is_closed_at_the_deadline(here: EgressHub) -> None:
    """Otherwise a receiver that answers once and then hangs would collect sockets, one for each attempt."""
    gone = threading.Event()

    def behave(peer: socket.socket) -> None:
        read_request(peer)
        peer.sendall(OK)
        read_request(peer)
        while peer.recv(65536):
            continue
        gone.set()

    with serving(behave) as server:
        (webhook,) = here.watch(f"http://127.0.0.1:{server.port}/")
        states = []
        for name, seconds in (("one", LONG), ("two", DEADLINE)):
            here.change(name)
            deliver(here.hub, seconds)
            states.append(here.last_delivery(webhook)["state"])
        assert states == ["delivered", "retrying"]
        assert server.connections == 1
        assert gone.wait(60)


class Pouring:
    """Sends one piece after another for as long as the client reads."""

    def __init__(self, head: bytes, piece: bytes) -> None:
        self.sent, self.ended = 0, threading.Event()
        self._head, self._piece = head, piece

    def __call__(self, peer: socket.socket) -> None:
        read_request(peer)
        try:
            peer.sendall(self._head)
            while self.sent < ENDLESS:
                peer.sendall(self._piece)
                self.sent += len(self._piece)
        finally:
            self.ended.set()


PIECE = b"0123456789abcdef" * 256


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"Content-Length: 10000000000\r\n\r\n", PIECE),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"1000\r\n" + PIECE + b"\r\n"),
        (b"Connection: close\r\n\r\n", PIECE),
    ],
    ids=["length", "chunks", "to the end"],
)
def test_w21_endless_body_is_read_up_to_64_kib(here: EgressHub, head: bytes, piece: bytes) -> None:
    pouring = Pouring(b"HTTP/1.1 200 OK\r\n" + head, piece)
    with serving(pouring) as server:
        one, _ = single_attempt(here, f"http://127.0.0.1:{server.port}/", seconds=LONG)
        assert pouring.ended.wait(60)
    # Socket buffers may have accepted a little more.
    assert pouring.sent < ENDLESS / 4
    assert (one["status"], one["state"]) == (200, "delivered")
    assert one["response"] == (PIECE * 2)[:4096].decode(), "and of that an excerpt is kept"


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "deflate, gzip"])
def test_w22_compressed_answers_are_not_inflated(here: EgressHub, encoding: str) -> None:
    bomb = gzip.compress(b"\0" * 10_000_000)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(bomb)}\r\n\r\n"
    seen: list[bytes] = []
    with serving(answering(head.encode() + bomb, seen)) as server:
        one, _ = single_attempt(here, f"http://127.0.0.1:{server.port}/", seconds=LONG)
    assert one["response"] == bomb[:4096].decode("utf-8", "replace")
    assert b"\r\naccept-encoding: identity\r\n" in seen[0].lower()


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"X-Filler: " + b"x" * 4000 + b"\r\n"),
        (b"HTTP/1.1 200 OK\r\nX-Filler: ", b"x" * 4000),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n",
            b"X-Trailer: " + b"x" * 4000 + b"\r\n",
        ),
        (b"HTTP/1.1 ", b"2" * 4000),
    ],
    ids=["headers", "one header", "interim answers", "trailers", "status"],
)
def test_w23_endless_headers_are_cut_off(here: EgressHub, head: bytes, piece: bytes) -> None:
    pouring = Pouring(head, piece)
    with serving(pouring) as server:
        one, _took = single_attempt(here, f"http://127.0.0.1:{server.port}/", seconds=1.5)
        assert pouring.ended.wait(60)
    assert pouring.sent < ENDLESS / 4
    assert (one["status"], one["state"]) == (None, "retrying")


def test_w24_hanging_tls_or_a_foreign_certificate_is_a_failure(sqlite_template: Path, tmp_path: Path) -> None:
    theirs, trusted = certificate_for("ci.example", tmp_path)
    seen: list[bytes] = []
    names = {"ci.example": [["127.0.0.1"]], "other.example": [["127.0.0.1"]]}
    with (
        serving(answering(OK, seen), tls=theirs) as good,
        serving(answering(OK, seen)) as plain,
        serving(silent) as mute,
    ):
        with run_egress_hub(sqlite_template, tmp_path, names, tls=trusted) as here:  # type: ignore[arg-type]
            urls = [
                f"https://ci.example:{good.port}/",
                f"https://other.example:{good.port}/",
                f"https://127.0.0.1:{good.port}/",
                f"https://ci.example:{plain.port}/",
                f"https://ci.example:{mute.port}/",
            ]
            states = [single_attempt(here, urls[0], "r0", LONG)[0]["state"]]
            states += [single_attempt(here, url, f"r{number}")[0]["state"] for number, url in enumerate(urls[1:], 1)]
        with run_egress_hub(sqlite_template, tmp_path, names) as here:  # type: ignore[arg-type]
            states.append(single_attempt(here, urls[0])[0]["state"])
    assert states == ["delivered", *["retrying"] * 5], "only the certificate for the name, of somebody we trust"
    assert len(seen) == 1, "and nothing was sent in the clear instead"


@pytest.fixture
def slow_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """The system's resolver, except that lookups in one domain block until the event is set, apart from one name."""
    over, real = threading.Event(), socket.getaddrinfo

    def look_up(host: str, *rest: Any, **more: Any) -> Any:
        if host == "healthy.slow.example":
            return real("localhost", *rest, **more)
        if isinstance(host, str) and host.endswith(".slow.example"):
            over.wait(60)
            raise socket.gaierror(socket.EAI_AGAIN, "later")
        return real(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield over
    over.set()


def test_w25_slow_lookups_do_not_delay_others(
    sqlite_template: Path, tmp_path: Path, slow_names: threading.Event
) -> None:
    """There are more slow names than one domain has lookup threads: a healthy name is still resolved at once."""
    arrived: list[float] = []

    def behave(peer: socket.socket) -> None:
        read_request(peer)
        arrived.append(time.monotonic())
        peer.sendall(OK)

    with (
        serving(behave) as server,
        run_egress_hub(sqlite_template, tmp_path, allowed=("127.0.0.0/8", "::1/128")) as here,
    ):
        slow = here.watch(*(f"http://n{number}.slow.example:{server.port}/" for number in range(THREADS_PER_SITE + 20)))
        (healthy,) = here.watch(f"http://localhost:{server.port}/")
        here.change()
        began = time.monotonic()
        deliver(here.hub, 2.0)
        assert here.last_delivery(healthy)["state"] == "delivered"
        assert arrived[0] - began < LATEST
        states = [here.last_delivery(webhook)["state"] for webhook in slow]
        assert states.count("retrying") == THREADS_PER_SITE, "a name that hangs counts as a try"
        assert states.count("pending") == 20, "deliveries without a free slot were not attempted"
        slow_names.set()


def test_w25_slow_lookups_do_not_delay_other_owners_below_a_public_suffix(
    sqlite_template: Path, tmp_path: Path, slow_names: threading.Event
) -> None:
    """Names below `co.uk` belong to different owners: one owner's slow names leave threads for the others."""
    with (
        serving(answering(OK)) as server,
        run_egress_hub(sqlite_template, tmp_path, allowed=("127.0.0.0/8", "::1/128")) as here,
    ):
        slow = here.watch(*(f"http://n{number}.evil.slow.example:{server.port}/" for number in range(50)))
        (healthy,) = here.watch(f"http://healthy.slow.example:{server.port}/")
        here.change()
        deliver(here.hub, 2.0)
        states = [here.last_delivery(webhook)["state"] for webhook in slow]
        assert here.last_delivery(healthy)["state"] == "delivered"
        assert (states.count("retrying"), states.count("pending")) == (THREADS_PER_OWNER, 50 - THREADS_PER_OWNER)
        slow_names.set()
