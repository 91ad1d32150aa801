"""A webhook receiver on raw sockets: `python -m bench.receiver`.

The program prints its port and serves until standard input ends. Every POST is counted and answered with 200; for a
POST to `/timed` the body and the time are stored. `GET /count` returns the count and the CPU time used, `GET /timed`
returns the stored entries and deletes them. Times are from the system's monotonic clock, the same in all processes.
"""

import asyncio
import json
import re
import sys
import time

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
BACKLOG = 4096


class _Received:
    def __init__(self) -> None:
        self.count = 0
        self.timed: list[tuple[float, str]] = []

    def respond(self, head: bytes, body: bytes) -> bytes:
        if head.startswith(b"POST"):
            self.count += 1
            if head.startswith(b"POST /timed "):
                self.timed.append((time.monotonic(), body.decode()))
            return _OK
        if head.startswith(b"GET /count "):
            return _json({"count": self.count, "cpu": time.process_time()})
        entries, self.timed = self.timed, []
        return _json(entries)


class _Connection(asyncio.Protocol):
    def __init__(self, received: _Received) -> None:
        self._received = received
        self._pending = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._pending += data
        while (end := self._pending.find(b"\r\n\r\n")) >= 0:
            head = self._pending[:end]
            length = _LENGTH.search(head)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._pending) < whole:
                return
            body, self._pending = self._pending[end + 4 : whole], self._pending[whole:]
            self._transport.write(self._received.respond(head, body))


def _json(value: object) -> bytes:
    body = json.dumps(value).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


async def main() -> None:
    received, loop = _Received(), asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(received), "127.0.0.1", 0, backlog=BACKLOG)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
