"""A real service behind the gateway: it records requests, and a test decides how it answers."""

import base64
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from tests.bed import lean_http

_READ_BYTES = 64 * 1024


@dataclass
class UpstreamRequest:
    """A request that the service received, with the means to answer it."""

    handler: "_Handler"
    method: str
    path: str
    # In the order received, names in lower case.
    headers: list[tuple[str, str]]
    # Set by an answer that has seen the gateway close the connection.
    closed: threading.Event = field(default_factory=threading.Event)

    def header(self, name: str) -> str | None:
        values = [value for given, value in self.headers if given == name]
        assert len(values) <= 1, (name, values)
        return values[0] if values else None

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.headers}

    @property
    def token(self) -> str:
        scheme, _, token = (self.header("authorization") or "").partition(" ")
        assert scheme == "Bearer"
        return token

    def parts(self) -> Iterator[bytes]:
        """The body: in its chunks, or as it is received."""
        if self.header("transfer-encoding") == "chunked":
            while size := int(self.handler.rfile.readline(), 16):
                yield self.handler.rfile.read(size)
                self.handler.rfile.readline()
            self.handler.rfile.readline()
            return
        left = int(self.header("content-length") or 0)
        while left:
            part = self.handler.rfile.read1(min(left, _READ_BYTES))
            if not part:
                raise ConnectionError("the gateway closed the connection")
            left -= len(part)
            yield part

    def body(self) -> bytes:
        return b"".join(self.parts())

    def start(self, status: int = 200, *headers: tuple[str, str]) -> None:
        """Send the head of the answer."""
        self.handler.send_response_only(status)
        for name, value in headers:
            self.handler.send_header(name, value)
        self.handler.end_headers()

    def write(self, data: bytes) -> None:
        self.handler.wfile.write(data)

    def write_chunk(self, data: bytes) -> None:
        self.write(b"%x\r\n%b\r\n" % (len(data), data))

    def reply(self, body: Any = None, status: int = 200, *headers: tuple[str, str]) -> None:
        """Send a complete answer as JSON."""
        content = json.dumps(body).encode()
        length = ("content-length", str(len(content)))
        self.start(status, ("content-type", "application/json"), length, *headers)
        if self.method != "HEAD":
            self.write(content)

    def wait_until_closed(self) -> None:
        """Wait until the gateway closes the connection."""
        try:
            while self.handler.connection.recv(_READ_BYTES):
                continue
        except OSError:
            pass
        self.closed.set()

    def break_connection(self) -> None:
        """Reset the connection, as the kernel does for a process that was killed."""
        connection = self.handler.connection
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # The files share the socket, which is closed only when all of them are.
        for file in (self.handler.rfile, self.handler.wfile, connection):
            file.close()


Answer = Callable[[UpstreamRequest], None]


def echo(request: UpstreamRequest) -> None:
    request.reply({"method": request.method, "path": request.path, "length": sum(map(len, request.parts()))})


class Upstream(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answer: Answer, tls: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.tls = tls
        self.received: list[UpstreamRequest] = []

    @property
    def url(self) -> str:
        port = self.server_address[1]
        return f"https://localhost:{port}" if self.tls else f"http://127.0.0.1:{port}"

    @property
    def last(self) -> UpstreamRequest:
        return self.received[-1]

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Runs in the thread of the connection, so that a handshake does not block the others."""
        with self.tls.wrap_socket(request, server_side=True) if self.tls else request as connection:
            super().finish_request(connection, client_address)

    def handle_error(self, *_: object) -> None:
        """Ignore errors: the gateway may close a connection at any time."""


class _Handler(BaseHTTPRequestHandler):
    server: Upstream
    protocol_version = "HTTP/1.1"
    # Otherwise each part of a response waits 40 ms for the acknowledgement of the part before.
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        headers = [(name.lower(), value) for name, value in self.headers.items()]
        request = UpstreamRequest(self, self.command, self.path, headers)
        self.server.received.append(request)
        self.server.answer(request)
        self.close_connection = True

    do_GET = do_HEAD = do_PUT = do_PATCH = do_DELETE = do_POST  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def run_upstream(answer: Answer = echo, tls: ssl.SSLContext | None = None) -> Iterator[Upstream]:
    """Run a service. With `tls`, its certificate must be for localhost."""
    upstream = Upstream(answer, tls)
    thread = threading.Thread(target=upstream.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield upstream
    finally:
        upstream.shutdown()
        upstream.server_close()
        thread.join(5)


def verified_claims(hub_url: str, token: str) -> dict[str, Any]:
    """The claims of a signed identity, verified with the published keys as a service does it."""
    head, body, signature = token.split(".")
    header = json.loads(_decode(head))
    assert header["alg"] == "RS256"
    keys = {key["kid"]: key for key in lean_http.get(f"{hub_url}/oauth/jwks").json()["keys"]}
    key = keys[header["kid"]]
    numbers = rsa.RSAPublicNumbers(*(int.from_bytes(_decode(key[part])) for part in ("e", "n")))
    numbers.public_key().verify(_decode(signature), f"{head}.{body}".encode(), padding.PKCS1v15(), SHA256())
    claims: dict[str, Any] = json.loads(_decode(body))
    return claims


def _decode(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
