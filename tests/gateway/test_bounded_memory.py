"""Large bodies and slow readers: the memory of the gateway does not depend on their size."""

import contextlib
import hashlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.lean_http import LeanClient
from tests.bed.memory import watch_memory
from tests.bed.people import create_token, create_user
from tests.bed.processes import HubProcess, hub_process
from tests.bed.running_hub import run_hub
from tests.bed.upstream import Upstream, UpstreamRequest
from tests.faults.conftest import create_store

MIB = 1024 * 1024
SIZE = 100 * MIB
BLOCK = bytes(range(256)) * 4096
# One copy of the body would exceed the limit.
MOST_ADDED = 60 * MIB


@pytest.fixture(params=["granian", "uvicorn"])
def hub(
    request: pytest.FixtureRequest, sqlite_template: Path, tmp_path: Path, upstream: Upstream
) -> Iterator[tuple[HubProcess, str]]:
    """A hub in its own process, and Ada's token."""
    store = create_store(SqliteEngine(sqlite_template, tmp_path).fresh_url(), tmp_path)
    with run_hub(settings_for(store.url, store.folder / "data")) as prepared:
        token = create_token(prepared, create_user(prepared, "ada"))
    flags = (*store.flags, "--inference-upstream", upstream.url, "--server", request.param, "--deliver", "off")
    with hub_process(tmp_path, *flags) as process:
        yield process, token


def blocks() -> Iterator[bytes]:
    for _ in range(SIZE // len(BLOCK)):
        yield BLOCK


def digest(parts: Iterator[bytes]) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()


def test_100_mb_pass_in_both_directions(hub: tuple[HubProcess, str], upstream: Upstream) -> None:
    process, token = hub
    received = []

    def answer(request: UpstreamRequest) -> None:
        received.append(digest(request.parts()))
        request.start(200, ("content-length", str(SIZE)))
        for block in blocks():
            request.write(block)

    upstream.answer = answer
    headers = {"authorization": f"Bearer {token}", "content-length": str(SIZE)}
    with LeanClient(base_url=process.url, timeout=120) as client, watch_memory(process.process.pid) as peaks:
        client.get("/healthz")
        peaks.measure(process.process.pid)
        before = peaks.highest
        with client.stream("POST", "/v1/files", content=blocks(), headers=headers) as response:
            assert response.status_code == 200
            assert digest(response.iter_raw()) == digest(blocks())
    assert received == [digest(blocks())]
    assert peaks.highest - before < MOST_ADDED, peaks


def test_slow_reader_slows_the_service(hub: tuple[HubProcess, str], upstream: Upstream) -> None:
    """The service can send only as much as the sockets between it and the client buffer."""
    process, token = hub
    stalled = threading.Event()
    sent = 0

    def answer(request: UpstreamRequest) -> None:
        nonlocal sent
        request.start(200, ("content-length", str(SIZE)))
        request.handler.connection.settimeout(1)
        try:
            for block in blocks():
                request.write(block)
                sent += len(block)
        except TimeoutError:
            stalled.set()
            request.break_connection()

    upstream.answer = answer
    address = urlsplit(process.url)
    with socket.socket() as client, watch_memory(process.process.pid) as peaks:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        client.connect((address.hostname, address.port))
        peaks.measure(process.process.pid)
        before = peaks.highest
        head = f"GET /v1/files/1/content HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {token}\r\n\r\n"
        client.sendall(head.encode())
        assert client.recv(10).startswith(b"HTTP/1.1")
        assert stalled.wait(60), "the service was never slowed down"
    assert sent < SIZE // 2
    assert peaks.highest - before < MOST_ADDED, peaks


def test_slow_service_slows_the_client(hub: tuple[HubProcess, str], upstream: Upstream) -> None:
    """The client can send only as much as the sockets between it and the service buffer."""
    process, token = hub
    stalled = threading.Event()

    def answer(_: UpstreamRequest) -> None:
        assert stalled.wait(60)

    upstream.answer = answer
    address = urlsplit(process.url)
    sent = 0
    with (
        socket.create_connection((address.hostname, address.port), timeout=1) as client,
        watch_memory(process.process.pid) as peaks,
    ):
        peaks.measure(process.process.pid)
        before = peaks.highest
        head = f"POST /v1/files HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {token}\r\n"
        client.sendall(f"{head}content-length: {SIZE}\r\n\r\n".encode())
        with contextlib.suppress(TimeoutError):
            for block in blocks():
                client.sendall(block)
                sent += len(block)
    stalled.set()
    assert sent < SIZE // 2
    assert peaks.highest - before < MOST_ADDED, peaks
