"""Misbehaving servers on raw sockets, and calls to them with the sync and the async client."""

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bed.blocking import run_blocking
from tests.bed.sleepless_drivers import without_sleeping

from hubgate import AsyncHub, Hub

TOKEN = "hf_secret_of_ada"
CLIENT_TYPES = (Hub, AsyncHub)


@dataclass(frozen=True)
class SeenRequest:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


ScriptedResponse = bytes | Callable[[socket.socket, SeenRequest], None]


class HostileServer:
    """A server that sends one response per connection and closes it; the last response is repeated."""

    def __init__(self, *answers: ScriptedResponse) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._answers = list(answers)
        self.seen: list[SeenRequest] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        # `close` alone does not wake a thread that is blocked in `accept`.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            with peer, contextlib.suppress(OSError):
                seen = _read(peer)
                if seen is None:
                    continue
                self.seen.append(seen)
                answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
                peer.sendall(answer) if isinstance(answer, bytes) else answer(peer, seen)


@contextmanager
def run_hostile_server(*answers: ScriptedResponse) -> Iterator[HostileServer]:
    server = HostileServer(*answers)
    try:
        yield server
    finally:
        server.close()


def _read(peer: socket.socket) -> SeenRequest | None:
    peer.settimeout(60)
    data = b""
    while b"\r\n\r\n" not in data:
        piece = peer.recv(65_536)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += peer.recv(65_536)
    method, target, _ = first.split(" ", 2)
    return SeenRequest(method, target, headers, body)


def http_response(status: int, body: bytes = b"", **headers: str) -> bytes:
    """A well-formed response. Names in `headers` have underscores instead of dashes."""
    given = {"content-length": str(len(body)), "connection": "close"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 {status} Scripted\r\n{lines}\r\n".encode() + body


def json_response(status: int, value: Any, **headers: str) -> bytes:
    return http_response(status, json.dumps(value).encode(), **{"content_type": "application/json", **headers})


def reset(peer: socket.socket, _: SeenRequest) -> None:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def call_with(client_type: type[Any], url: str, operation: Callable[[Any], Any], folder: Path, **more: Any) -> Any:
    """Call `operation` with the sync or the async client and return the result. Retries do not wait: the tests check
    whether the client retries, not when.
    """
    options = {"token": TOKEN, "timeout": 60, "retries": 0, "config_folder": folder, **more}
    if client_type is Hub:
        with without_sleeping(Hub(url, **options), _nothing) as hub:
            return operation(hub)

    async def run() -> Any:
        async with without_sleeping(AsyncHub(url, **options), _nothing) as hub:
            return await operation(hub)

    return run_blocking(run())


def _nothing(_: float) -> None: ...
