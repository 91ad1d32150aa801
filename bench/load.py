"""A load generator on raw sockets: `python -m bench.load PORT CONNECTIONS SECONDS`.

The first line of standard input is the plan as JSON: the requests and the mode of sending. Requests are encoded
before the clock starts. Each connection is persistent and sends its next request when the last response is complete.
Any response other than a complete 200 or 206 ends the run. The program prints a JSON object.
"""

import asyncio
import json
import re
import sys
import time
from collections import deque
from collections.abc import Mapping
from statistics import quantiles
from typing import NamedTuple

MAX_REQUESTS = 200_000
BUFFER = 256 * 1024

# Send the requests in turn, repeatedly.
REPEAT = "repeat"
# Send each request once (authorization codes); the run ends when no requests are left.
ONCE = "once"
# As REPEAT, but each request ends with a refresh token, which is replaced by the token in the response.
ROTATE = "rotate"

_SUCCESS = (b"HTTP/1.1 200 ", b"HTTP/1.1 206 ")
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
_NEW_REFRESH_TOKEN = re.compile(rb'"refresh_token":"([^"]+)"')


class Request(NamedTuple):
    method: str
    path: str
    headers: Mapping[str, str]
    body: str = ""

    def encoded(self, port: int) -> bytes:
        body = self.body.encode()
        length = [f"Content-Length: {len(body)}"] if body else []
        lines = [
            f"{self.method} {self.path} HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            "Accept: */*",
            *(f"{name}: {value}" for name, value in self.headers.items()),
            *length,
            "",
            "",
        ]
        return "\r\n".join(lines).encode() + body


class _RequestQueue:
    """A queue of requests. A request in flight is not in the queue, so no token is sent twice."""

    def __init__(self, requests: list[bytes], mode: str, connections: int) -> None:
        self._mode = mode
        # Requests that may be sent concurrently are copied so that each connection has a request.
        copies = -(-connections // len(requests)) if mode == REPEAT else 1
        self._waiting = deque(requests * copies)

    def take(self) -> bytes | None:
        return self._waiting.popleft() if self._waiting else None

    def add_response(self, request: bytes, response: bytes) -> None:
        if self._mode == REPEAT:
            self._waiting.append(request)
        elif self._mode == ROTATE:
            found = _NEW_REFRESH_TOKEN.search(response)
            if found is None:
                raise RuntimeError("a response without a refresh token")
            # Both tokens have the same length, so Content-Length stays correct.
            self._waiting.append(request[: -len(found[1])] + found[1])


class _Client(asyncio.BufferedProtocol):
    """A connection. The rest of a body that exceeds the buffer is counted and discarded."""

    def __init__(self, queue: _RequestQueue, deadline: float, latencies: list[float]) -> None:
        self._queue = queue
        self._deadline = deadline
        self._latencies = latencies
        self._buffer = memoryview(bytearray(BUFFER))
        self._request = b""
        self._response = b""
        # Remaining bytes of a long body.
        self._left = 0
        self.received = 0
        self._sent_at = 0.0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send_next()

    def get_buffer(self, _: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, count: int) -> None:
        self.received += count
        if self._left:
            self._left -= count
            if not self._left:
                self._complete(b"")
            return
        self._response += self._buffer[:count]
        head, separator, body = self._response.partition(b"\r\n\r\n")
        if not separator:
            return
        length = _LENGTH.search(head)
        if length is None or not head.startswith(_SUCCESS):
            self._end(RuntimeError(f"unexpected response: {head!r} {body[:300]!r}"))
        elif len(body) == int(length[1]):
            self._complete(body)
        elif int(length[1]) > BUFFER:
            self._left = int(length[1]) - len(body)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc or ConnectionError("the server closed a connection"))

    def _send_next(self) -> None:
        request = self._queue.take()
        if request is None:
            self._end(None)
            return
        self._request, self._response = request, b""
        self._sent_at = time.perf_counter()
        self._transport.write(request)

    def _complete(self, body: bytes) -> None:
        now = time.perf_counter()
        self._latencies.append(now - self._sent_at)
        self._queue.add_response(self._request, body)
        if now < self._deadline and len(self._latencies) < MAX_REQUESTS:
            self._send_next()
        else:
            self._end(None)

    def _end(self, error: Exception | None) -> None:
        if self.ended.done():
            return
        if error is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(error)
        self._transport.close()


async def run(port: int, connections: int, seconds: float, requests: list[bytes], mode: str) -> dict[str, float]:
    queue = _RequestQueue(requests, mode, connections)
    latencies: list[float] = []
    loop = asyncio.get_running_loop()
    started, busy = time.perf_counter(), time.process_time()
    opening = [
        loop.create_connection(lambda: _Client(queue, started + seconds, latencies), "127.0.0.1", port)
        for _ in range(connections)
    ]
    clients = [client for _, client in await asyncio.gather(*opening)]
    await asyncio.wait_for(asyncio.gather(*(client.ended for client in clients)), seconds + 20)
    took = time.perf_counter() - started
    cuts = quantiles(latencies, n=100) if len(latencies) > 1 else latencies * 99
    return {
        "responses": len(latencies),
        "rate": len(latencies) / took,
        "MB/s": sum(client.received for client in clients) / took / 1e6,
        "p50 ms": cuts[49] * 1000,
        "p99 ms": cuts[98] * 1000,
        "load's core %": 100 * (time.process_time() - busy) / took,
    }


def main() -> None:
    port, connections, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    plan = json.loads(sys.stdin.buffer.readline())
    requests = [Request(*given).encoded(port) for given in plan["requests"]]
    print(json.dumps(asyncio.run(run(port, connections, seconds, requests, plan["mode"]))))


if __name__ == "__main__":
    main()
