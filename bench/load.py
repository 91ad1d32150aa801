"""A load generator on bare sockets: `python -m bench.load PORT PATH CONNECTIONS SECONDS [HEADER ...]`.

Every connection is kept alive and sends its next request when the last answer is complete. Anything but a whole 200
ends the run. Prints one JSON object.
"""

import asyncio
import json
import re
import sys
import time
from statistics import quantiles

MOST = 200_000
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)


class _Client(asyncio.Protocol):
    def __init__(self, request: bytes, deadline: float, latencies: list[float]) -> None:
        self._request = request
        self._deadline = deadline
        self._latencies = latencies
        self._answer = b""
        self._sent_at = 0.0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, separator, body = self._answer.partition(b"\r\n\r\n")
        if not separator:
            return
        length = _LENGTH.search(head)
        if length is None or not head.startswith(b"HTTP/1.1 200 "):
            self._end(RuntimeError(f"not the answer expected: {head!r}"))
        elif len(body) == int(length[1]):
            self._complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc or ConnectionError("the server closed a connection"))

    def _send(self) -> None:
        self._answer = b""
        self._sent_at = time.perf_counter()
        self._transport.write(self._request)

    def _complete(self) -> None:
        now = time.perf_counter()
        self._latencies.append(now - self._sent_at)
        if now < self._deadline and len(self._latencies) < MOST:
            self._send()
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


async def run(port: int, path: str, connections: int, seconds: float, headers: list[str]) -> dict[str, float]:
    lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Accept: */*", *headers, "", ""]
    request = "\r\n".join(lines).encode()
    latencies: list[float] = []
    loop = asyncio.get_running_loop()
    started, busy = time.perf_counter(), time.process_time()
    opening = [
        loop.create_connection(lambda: _Client(request, started + seconds, latencies), "127.0.0.1", port)
        for _ in range(connections)
    ]
    clients = [client for _, client in await asyncio.gather(*opening)]
    await asyncio.wait_for(asyncio.gather(*(client.ended for client in clients)), seconds + 20)
    took = time.perf_counter() - started
    cuts = quantiles(latencies, n=100)
    return {
        "rate": len(latencies) / took,
        "p50 ms": cuts[49] * 1000,
        "p99 ms": cuts[98] * 1000,
        "load's core %": 100 * (time.process_time() - busy) / took,
    }


if __name__ == "__main__":
    port, path, connections, seconds, *headers = sys.argv[1:]
    print(json.dumps(asyncio.run(run(int(port), path, int(connections), float(seconds), headers))))
