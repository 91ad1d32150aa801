"""A far end on a real socket in place of a store, which answers as a test says."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from tests.objects.stores import Place

_VARIABLES = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}


@dataclass(frozen=True)
class StoreRequest:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


# The bytes to send, after which the connection is closed; None to send nothing until the client has disconnected.
Answer = Callable[[StoreRequest], bytes | None]


@dataclass
class FarEnd:
    """The requests so far, and the answer to the next ones."""

    address: str
    answer: Answer
    requests: list[StoreRequest] = field(default_factory=list)

    def place(self, folder: Path) -> Place:
        return Place(folder, "s3://bucket/hub", {**_VARIABLES, "AWS_ENDPOINT_URL": self.address})

    def count(self, method: str) -> int:
        return sum(request.method == method for request in self.requests)


def response(status: int, body: bytes = b"", *, sent: int | None = None, **headers: str) -> bytes:
    """A response; only the first `sent` bytes of the body are sent, if given."""
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", "connection: close", f"content-length: {len(body)}"]
    lines += [
        f"{name.replace('_', '-')}: {value}" for name, value in {"content_length": str(len(body)), **headers}.items()
    ]
    return "\r\n".join([*lines, "", ""]).encode() + (body if sent is None else body[:sent])


def error(status: int, code: str) -> bytes:
    return response(status, f"<Error><Code>{code}</Code><Message>As the test says</Message></Error>".encode())


def range_of(request: StoreRequest) -> tuple[int, int]:
    """The requested range, the end not included."""
    first, _, last = request.headers["range"].removeprefix("bytes=").partition("-")
    return int(first), int(last) + 1


def part_of(content: bytes, request: StoreRequest, sent: int | None = None) -> bytes:
    start, end = range_of(request)
    found = content[start:end]
    return response(206, found, sent=sent, content_range=f"bytes {start}-{end - 1}/{len(content)}")


@contextlib.contextmanager
def run_far_end(answer: Answer) -> Iterator[FarEnd]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=50)
    far_end = FarEnd(f"http://127.0.0.1:{listener.getsockname()[1]}", answer)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=_serve, args=(far_end, connection), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield far_end
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _serve(far_end: FarEnd, connection: socket.socket) -> None:
    with connection, connection.makefile("rb") as stream, contextlib.suppress(OSError):
        method, _, rest = stream.readline().decode().partition(" ")
        headers: dict[str, str] = {}
        while line := stream.readline().decode().strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = stream.read(int(headers.get("content-length", "0")))
        request = StoreRequest(method, rest.rpartition(" ")[0], headers, body)
        far_end.requests.append(request)
        if (sent := far_end.answer(request)) is None:
            stream.read(1)
        else:
            connection.sendall(sent)
