"""Apps in real sandboxes: a runner in a private folder, its proxies, and apps written as text."""

import asyncio
import io
import json
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from ipaddress import ip_network
from pathlib import Path
from textwrap import dedent
from typing import Any

from hubgate.server.egress.client import Egress
from hubgate.server.egress.connection import Connection
from hubgate.server.spaces.bubblewrap.runner import BubblewrapRunner
from hubgate.server.spaces.proxy import Proxy
from hubgate.server.spaces.runner import MIB, App, Environment, Exit, Limits, LimitsTogether, Runner, Running

# Small, so that tests reach them quickly.
LIMITS = Limits(cpu=2.0, memory=192 * MIB, processes=32, disk=32 * MIB, build_seconds=120)

# Within this time every app listens, also on a machine that is busy with other tests.
START_SECONDS = 300.0

# Answers every GET with a text, and lists the environment under /environment.
SERVER = """
    import http.server, json, os

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps(dict(os.environ)).encode() if self.path == "/environment" else b"hello"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    http.server.ThreadingHTTPServer((os.environ["HOST"], int(os.environ["PORT"])), Handler).serve_forever()
"""


@dataclass
class Bed:
    folder: Path
    runner: Runner
    app: App
    lines: list[str] = field(default_factory=list)
    _count: int = 0

    def with_code(self, code: str, space: str = "space-1", **changes: Any) -> App:
        """An app with this app.py."""
        self._count += 1
        source = self.folder / f"source-{self._count}.tar"
        source.write_bytes(archive({"app.py": dedent(code)}))
        return replace(self.app, space=space, source=source, **changes)

    async def start(self, app: App) -> Running:
        return await self.runner.start(app, Environment(""), self.lines.append)

    async def serving(self, code: str = SERVER, **changes: Any) -> Running:
        running = await self.start(self.with_code(code, **changes))
        await running.until_listening(START_SECONDS)
        return running

    async def ended(self, code: str, seconds: float = 60, **changes: Any) -> Exit:
        """Run an app to its end."""
        running = await self.start(self.with_code(code, **changes))
        try:
            async with asyncio.timeout(seconds):
                return await running.wait()
        finally:
            await running.stop(0)

    async def printed(self, code: str, **changes: Any) -> Any:
        """The JSON that an app prints as its last line."""
        result = await self.ended(code, **changes)
        assert result.status == 0, (result, self.lines)
        return json.loads(self.lines[-1])


@asynccontextmanager
async def spaces_bed(
    folder: Path,
    *,
    allowed: str = "",
    direct: frozenset[tuple[str, int]] = frozenset(),
    together: LimitsTogether | None = None,
) -> AsyncIterator[Bed]:
    folder.chmod(0o700)
    egress = Egress([ip_network(allowed)] if allowed else [])
    runner, proxy = BubblewrapRunner(folder / "spaces", together), Proxy(egress, direct)
    socket = folder / "proxy.sock"
    await proxy.listen(socket)
    app = App("space-1", folder, "app.py", "", runner.pythons()[0], {}, LIMITS, socket, socket, "hub.example")
    try:
        yield Bed(folder, runner, app)
    finally:
        await runner.close()
        await proxy.close()
        egress.close()


def archive(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


async def get(running: Running, path: str = "/") -> bytes:
    """The body that the app answers to a GET."""
    connection = await running.connect(Connection)
    answer = await connection.exchange(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode(), MIB)
    return answer.body
