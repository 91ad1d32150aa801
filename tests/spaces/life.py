"""A hub in this process that runs Spaces for real, and small apps for them."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import dedent
from typing import Any

import httpx
from msgspec.structs import replace
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub
from tests.bed.spaces import NAME, SPACE

from hubgate.server.resources import Hub
from hubgate.server.spaces import logs_store
from hubgate.server.spaces.host.context import Pace
from hubgate.server.spaces.host.process import SpacesProcess
from hubgate.server.worker.spaces import egress_for_spaces, host_context

# Patient with apps that start slowly on a busy machine.
PACE = Pace(start=300, grace=5, backoff=0.01, stable=3600, poll=0.1, use=0.1)
CARD = "---\nsdk: python\n---\n"

# Answers POST with its version, what it was sent, and a part of its environment.
_APP = """
    import http.server, json, os

    class Handler(http.server.BaseHTTPRequestHandler):
        # Keeps connections open.
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            received = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if received == "crash":
                os._exit(9)
            if received == "odd status":
                self.send_response(600)
                self.end_headers()
                return
            print("got", self.path, flush=True)
            names = ("COLOR", "TOKEN", "SPACE_ID", "SPACE_HOST", "HF_ENDPOINT")
            answer = {"version": VERSION, "path": self.path, "received": received,
                      "headers": dict(self.headers), "environment": {name: os.environ.get(name) for name in names}}
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Retry-After", "9" * 2000)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    http.server.ThreadingHTTPServer((os.environ["HOST"], int(os.environ["PORT"])), Handler).serve_forever()
"""


def app(version: int = 1) -> str:
    return dedent(_APP).replace("VERSION", str(version))


def add_space(client: httpx.Client, files: dict[str, str], card: str = CARD, name: str = NAME) -> str:
    """Create a Space with these files; its id."""
    created: str = create_repo(client, name, "space")["id"]
    push(client, {"README.md": card, **files}, name)
    return created


def push(client: httpx.Client, files: dict[str, str], name: str = NAME) -> str:
    return create_commit(client, name, {path: text.encode() for path, text in files.items()}, repo_type="space")


@contextmanager
def running_spaces(hub: RunningHub, pace: Pace = PACE, **changes: Any) -> Iterator[None]:
    """Run the process for Spaces on the hub's event loop."""
    stop, egress = asyncio.Event(), egress_for_spaces(hub.settings)

    async def start(opened: Hub) -> "asyncio.Task[None]":
        context = replace(host_context(opened, egress, pace), **changes)
        return asyncio.create_task(SpacesProcess(context).run(stop))

    async def end(_: Hub) -> None:
        stop.set()
        await task
        egress.close()

    task = hub.call(start)
    try:
        yield
    finally:
        hub.call(end)


def until_stage(client: httpx.Client, *stages: str, name: str = NAME, seconds: float = 120) -> dict[str, Any]:
    """Wait until the Space is in one of the stages; its runtime."""
    deadline = time.monotonic() + seconds
    while True:
        runtime: dict[str, Any] = client.get(f"/api/spaces/{name}/runtime").json()
        if runtime["stage"] in stages:
            return runtime
        assert time.monotonic() < deadline, runtime
        time.sleep(0.05)


def post(client: httpx.Client, body: str = "hello", name: str = NAME) -> httpx.Response:
    return client.post(f"/hosted/{name}/webhooks/x?a=b", content=body)


def log_lines(hub: RunningHub, repo_id: str, kind: str) -> list[str]:
    async def work(opened: Hub) -> list[str]:
        found = await opened.db.read(lambda tx: logs_store.newest(tx, repo_id, kind, 1000))
        return [line.text for line in found]

    return hub.call(work)


__all__ = ["NAME", "SPACE"]
