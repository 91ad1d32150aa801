"""The hub's own answers while Spaces do their worst: p99 of a read and of a write, with and without them."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from textwrap import dedent

import httpx
from tests.bed.processes import hub_process, hubgate
from tests.bed.repos import create_commit, create_repo

from bench.harness import Table, run_interleaved, table
from bench.http_requests import Contestant, Server
from bench.load import Request
from bench.workspace import Workspace

TURN = 4.0
SETTLE_SECONDS = 2.0
ALONE = "no Space runs"
# What any program costs that takes turns with the hub on the same core, even if it always yields.
CONTROL = "a busy program of the lowest priority, no Space"
CARD = b"---\nsdk: python\n---\n"

_LISTEN = """
import os, socket, threading, time
server = socket.create_server((os.environ["HOST"], int(os.environ["PORT"])))
"""
# What the app does when it has listened.
_WORST = {
    "computes": """
        for _ in range(8):
            threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()
        while True:
            pass
    """,
    "forks without end": """
        while True:
            try:
                if os.fork() == 0:
                    while True:
                        pass
            except BlockingIOError:
                pass
    """,
    "prints without end": """
        while True:
            print("a line of a log that never ends", time.time())
    """,
    "fills memory and disk": """
        file, data = open("/app/file", "wb"), []
        while True:
            data.append(bytearray(1 << 20))
            try:
                file.write(bytes(1 << 20))
            except OSError:
                file.seek(0)
            time.sleep(0.001)
    """,
    "opens connections": """
        request = b"CONNECT 10.0.0.1:443 HTTP/1.1\\r\\n\\r\\n"
        def flood():
            while True:
                try:
                    socket.create_connection(("127.0.0.1", 61080), timeout=1).sendall(request)
                except OSError:
                    pass
        for _ in range(8):
            threading.Thread(target=flood, daemon=True).start()
        flood()
    """,
}


@contextlib.contextmanager
def _busy_program() -> Iterator[None]:
    lowest = os.sched_param(0)
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as program:
        try:
            os.sched_setscheduler(program.pid, os.SCHED_IDLE, lowest)
            yield
        finally:
            program.kill()


@dataclass
class _Hub:
    client: httpx.Client
    loads: Mapping[str, Contestant]

    def turn(self, load: str, seconds: float, space: str | None) -> float:
        """The hub's p99 in milliseconds while a Space runs."""
        if space is not None:
            self._post(space, "restart", {"RUNNING", "APP_STARTING", "RUNTIME_ERROR"})
            time.sleep(SETTLE_SECONDS)
        try:
            return self.loads[load].load(seconds)["p99 ms"]
        finally:
            if space is not None:
                self._post(space, "pause", {"PAUSED"})
                # Until its processes have ended.
                time.sleep(SETTLE_SECONDS)

    def control(self, load: str, seconds: float) -> float:
        with _busy_program():
            return self.turn(load, seconds, None)

    def _post(self, space: str, action: str, stages: set[str]) -> None:
        path = f"/api/spaces/ada/{space}"
        self.client.post(f"{path}/{action}").raise_for_status()
        for _ in range(600):
            if self.client.get(f"{path}/runtime").json()["stage"] in stages:
                return
            time.sleep(0.05)
        raise TimeoutError(f"{space} is in none of the stages {stages}")


def measure(workspace: Workspace) -> Iterator[Table]:
    with _hub(workspace) as hub:
        seconds = workspace.budget.seconds(TURN)
        for load in hub.loads:
            turns: dict[str, Callable[[], float]] = {
                ALONE: partial(hub.turn, load, seconds, None),
                CONTROL: partial(hub.control, load, seconds),
            }
            turns |= {f"one {name}": partial(hub.turn, load, seconds, _slug(name)) for name in _WORST}
            # In microseconds: tables have no decimals.
            samples = run_interleaved(turns, workspace.budget.rounds)
            figures = {name: [1000 * each for each in found] for name, found in samples.items()}
            yield table(f"{load}, while a Space", "p99 µs", ALONE, figures)


@contextlib.contextmanager
def _hub(workspace: Workspace) -> Iterator[_Hub]:
    folder = workspace.subfolder("spaces")
    variables = {"HUBGATE_SPACES_RUNNER": "bubblewrap", "HUBGATE_SPACES_MEMORY": str(256 << 20)}
    with hub_process(folder, **variables) as process:
        for command in (
            ("user", "create", "ada", "--email", "ada@example.org", "--verified", "--password-stdin"),
            ("token", "create", "ada", "--role", "write"),
        ):
            done = hubgate("admin", *command, cwd=folder, stdin=b"a long password\n", **variables)
            assert done.returncode == 0, done.stderr
        headers = {"Authorization": f"Bearer {done.stdout.strip()}"}
        with httpx.Client(base_url=process.url, headers=headers, timeout=60) as client:
            for name, code in _WORST.items():
                space = f"ada/{_slug(name)}"
                create_repo(client, space, "space")
                client.post(f"/api/spaces/{space}/pause")
                files = {"app.py": (_LISTEN + dedent(code)).encode(), "README.md": CARD}
                create_commit(client, space, files, repo_type="space")
                client.post(f"/api/spaces/{space}/pause").raise_for_status()
            create_repo(client, "ada/tiny")
            server = Server.of(process)
            read = Request("GET", "/api/whoami-v2", headers)
            path, kind = "/api/models/ada/tiny/settings", {"Content-Type": "application/json", **headers}
            writes = [Request("PUT", path, kind, json.dumps({"discussionsDisabled": each})) for each in (True, False)]
            loads = {
                "GET whoami": Contestant(server, lambda: [read], connections=1),
                "PUT settings": Contestant(server, lambda: writes, connections=1),
            }
            yield _Hub(client, loads)


def _slug(name: str) -> str:
    return name.replace(" ", "-")
