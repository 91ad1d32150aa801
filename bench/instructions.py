"""Python instructions that the hub executes for a request: `python -m bench.instructions`.

CPU time depends on what else the machine does; this count does not, so it shows the effect of a change on a busy
machine. A call of C code (SQLite, JSON, a signature) counts as one instruction, however long it takes. On SQLite, one
request at a time, on the event loop of web processes.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from bench.exchange import create_exchanger
from bench.load import Request
from bench.sign_ins import create_sign_ins
from hubgate.server.app import build_app
from hubgate.server.http.asgi import ASGIApp, Message, Scope
from hubgate.server.resources import open_hub
from hubgate.server.settings import Settings, load
from hubgate.server.startup import migrate_database, opened_for_operator
from hubgate.server.worker.child import run_with_uvloop

# Of each operation: the first requests fill caches and are not counted.
_UNCOUNTED, _COUNTED = 20, 40


class _Instructions:
    """Counts calls and instructions of Python code while it is installed with `sys.settrace`."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __call__(self, frame: FrameType, event: str, _: object) -> "_Instructions":
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self.counts[event] += 1
        return self


async def _measure(settings: Settings) -> None:
    async with opened_for_operator(settings) as hub:
        sign_ins = await create_sign_ins(hub, id_token_signed_response_alg="ES256")
        exchanger = await create_exchanger(hub, stored=0)
        operations = {
            "userinfo": await sign_ins.userinfos(),
            "who am I": await sign_ins.whoamis(),
            "introspection": await sign_ins.introspections(),
            "exchange": await exchanger.exchanges(),
            "device start": await exchanger.device_requests(),
            "code": await sign_ins.redemptions(_UNCOUNTED + _COUNTED),
            "refresh": await sign_ins.refreshes(),
        }
    serving = await open_hub(settings)
    app = build_app(serving)
    print(f"{'operation':<16}{'calls':>8}{'instructions':>14}")
    for name, requests in operations.items():
        for request in requests[:_UNCOUNTED]:
            await _send(app, request)
        calls, instructions = await _count(app, requests[_UNCOUNTED : _UNCOUNTED + _COUNTED])
        print(f"{name:<16}{calls:>8.0f}{instructions:>14,.0f}")
    await serving.close()


async def _count(app: ASGIApp, requests: Sequence[Request]) -> tuple[float, float]:
    """Calls and instructions for each request."""
    counted = _Instructions()
    sys.settrace(counted)
    try:
        for request in requests:
            await _send(app, request)
    finally:
        sys.settrace(None)
    return counted.counts["call"] / len(requests), counted.counts["opcode"] / len(requests)


async def _send(app: ASGIApp, request: Request) -> None:
    statuses: list[int] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": request.body.encode(), "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await app(_scope_of(request), receive, send)
    if statuses != [200]:
        raise RuntimeError(f"{request.method} {request.path}: {statuses}")


def _scope_of(request: Request) -> Scope:
    headers: list[tuple[bytes, bytes]] = [(b"host", b"127.0.0.1:8000"), (b"accept", b"*/*")]
    headers += [(name.lower().encode(), value.encode()) for name, value in request.headers.items()]
    if request.body:
        headers.append((b"content-length", str(len(request.body)).encode()))
    address = urlsplit(request.path)
    scope: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": request.method,
        "path": address.path,
        "raw_path": address.path.encode(),
        "query_string": address.query.encode(),
        "headers": headers,
        "client": ("127.0.0.1", 1),
    }
    return scope


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="hubgate-instructions-") as folder:
        settings = load({"data_dir": folder}, environment={})
        migrate_database(settings)
        run_with_uvloop(_measure(settings))


if __name__ == "__main__":
    main()
