"""A real HTTP receiver on a socket, which records requests and sends the responses a test defines."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Receiver(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answer: Callable[[Received], tuple[int, bytes]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.received: list[Received] = []
        self._request_received = threading.Condition()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def record(self, request: Received) -> tuple[int, bytes]:
        with self._request_received:
            self.received.append(request)
            self._request_received.notify_all()
        return self.answer(request)

    def wait_for(self, count: int, seconds: float = 60.0) -> list[Received]:
        with self._request_received:
            in_time = self._request_received.wait_for(lambda: len(self.received) >= count, seconds)
        assert in_time, f"{len(self.received)} of {count} requests were received"
        return self.received


class _Handler(BaseHTTPRequestHandler):
    server: Receiver
    protocol_version = "HTTP/1.1"
    # Otherwise the body waits 40 ms for the sender's acknowledgement of the headers.
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, content = self.server.record(Received(self.command, self.path, headers, body))
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def run_http_receiver(answer: Callable[[Received], tuple[int, bytes]] = lambda _: (200, b"{}")) -> Iterator[Receiver]:
    receiver = Receiver(answer)
    thread = threading.Thread(target=receiver.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.shutdown()
        receiver.server_close()
        thread.join(5)
