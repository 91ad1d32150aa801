"""Running fetches: limited in number, and ended as soon as the client disconnects."""

import contextlib
import os
import random
import socket
import subprocess
from pathlib import Path

import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.git import run_git
from tests.bed.packs import pkt_line
from tests.bed.people import api, create_token, create_user
from tests.bed.processes import until
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub
from tests.git.conftest import Scene

pytestmark = pytest.mark.one_engine

REQUEST = (
    "POST /ada/tiny/git-upload-pack HTTP/1.1\r\nHost: hub\r\nContent-Type: application/x-git-upload-pack-request\r\n"
)


def programs(command: bytes = b"upload-pack") -> set[int]:
    """Git programs of this process that serve a fetch."""
    found = set()
    for entry in Path("/proc").iterdir() if Path("/proc/self").exists() else []:
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1]) if words else 0
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if words[:1] == [b"git"] and command in words and parent == os.getpid():
            found.add(int(entry.name))
    return found


def fetch_request(scene: Scene) -> bytes:
    """A request for everything."""
    head = scene.refs()["refs/heads/main"]
    return pkt_line(f"want {head} side-band-64k\n".encode()) + b"0000" + pkt_line(b"done\n")


@pytest.fixture
def large(scene: Scene) -> Scene:
    """More than fits into the socket buffers."""
    work = scene.clone("large")
    work.git("config", "core.compression", "0")
    work.commit("large.txt", random.Random(1).randbytes(25_600_000))
    work.git("push", "-q", "origin", "main")
    return scene


def test_client_that_disconnects_while_receiving_ends_the_fetch(large: Scene) -> None:
    body = fetch_request(large)
    with socket.create_connection(large.hub.address, timeout=60) as connection:
        connection.sendall(f"{REQUEST}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert connection.recv(15) == b"HTTP/1.1 200 OK"
        until(programs)
    until(lambda: not programs())


def test_fetch_runs_at_low_priority(large: Scene) -> None:
    body = fetch_request(large)
    with socket.create_connection(large.hub.address, timeout=60) as connection:
        connection.sendall(f"{REQUEST}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert connection.recv(15) == b"HTTP/1.1 200 OK"
        until(programs)
        groups = {os.getpriority(os.PRIO_PGRP, process) for process in programs()}
        assert min(groups) > os.getpriority(os.PRIO_PROCESS, 0)


def test_client_that_disconnects_while_sending_ends_the_fetch(scene: Scene) -> None:
    body = fetch_request(scene)
    with socket.create_connection(scene.hub.address, timeout=60) as connection:
        connection.sendall(f"{REQUEST}Content-Length: {len(body)}\r\n\r\n".encode() + body[:-4])
        until(programs)
    until(lambda: not programs())
    assert '"level":"error"' not in scene.hub.log


def test_many_concurrent_fetches_are_all_served(scene: Scene) -> None:
    """There are more than slots: the others wait."""
    for number in range(3):
        create_commit(scene.client, "ada/tiny", {f"{number}.txt": b"x\n"})
    head = scene.refs()["refs/heads/main"]

    def clone(number: int) -> "subprocess.CompletedProcess[str]":
        return run_git(scene.folder, "clone", "-q", "--bare", scene.url(), f"copy-{number}")

    done = run_concurrently([lambda number=number: clone(number) for number in range(24)])  # type: ignore[misc]
    assert [entry.stderr for entry in done] == [""] * 24
    for number in range(24):
        assert run_git(scene.folder / f"copy-{number}", "rev-parse", "HEAD").stdout.strip() == head


def test_fetch_sees_every_acknowledged_push(scene: Scene) -> None:
    """The copy of the refs on disk is never behind the database when git reads it."""
    work = scene.clone("one")
    for number in range(10):
        sha = create_commit(scene.client, "ada/tiny", {"n.txt": str(number).encode()})
        assert work.git("ls-remote", "origin", "main").split()[0] == sha


@pytest.mark.limits(stall_seconds=5.0)
def test_unread_downloads_are_limited(sqlite_hub: RunningHub) -> None:
    """A file stored in git is sent by its own program: their number and time are limited."""
    with (
        api(sqlite_hub, create_token(sqlite_hub, create_user(sqlite_hub, "ada"))) as ada,
        contextlib.ExitStack() as stack,
    ):
        create_repo(ada, "tiny")
        create_commit(ada, "ada/tiny", {"large.txt": os.urandom(9 * 1024 * 1024), "small.txt": b"small"})
        for _ in range(24):
            stalled = stack.enter_context(socket.create_connection(sqlite_hub.address, timeout=60))
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stalled.sendall(b"GET /ada/tiny/resolve/main/large.txt HTTP/1.1\r\nHost: hub\r\n\r\n")
        until(lambda: len(programs(b"cat-file")) >= 16)
        assert ada.get("/ada/tiny/resolve/main/small.txt").text == "small"
        assert len(programs(b"cat-file")) == 16
        # Another caller, who is signed in, has a separate share.
        assert len(ada.get("/ada/tiny/resolve/main/large.txt").content) == 9 * 1024 * 1024
        until(lambda: not programs(b"cat-file"))
