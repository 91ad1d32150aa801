"""Requests per second of a real `hubgate serve`, compared with a handler that only sends the same bytes."""

import contextlib
import json
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import urlencode

import httpx
from tests.bed.processes import ROOT, HubProcess, children_of, environment, hub_process

from bench.harness import Table, run_interleaved, table
from bench.load import REPEAT, Request
from bench.workspace import Workspace

TURN = 1.5
CONNECTIONS = 32
PATHS = ("/healthz", "/oauth/jwks")
BARE, HUB = "bare ASGI handler", "hubgate serve"
# Headers that the HTTP server adds.
SERVER_HEADERS = {"date", "server"}

# A fixed response: headers and body.
FixedResponse = tuple[list[tuple[str, str]], str]


class Server(NamedTuple):
    """A process that listens on a local port, with its children."""

    port: int
    pid: int

    @classmethod
    def of(cls, hub: HubProcess) -> "Server":
        return cls(httpx.URL(hub.url).port or 80, hub.process.pid)

    def cpu_seconds(self) -> float:
        """The CPU time used so far; 0 on systems without /proc."""
        ticks = 0
        for pid in (self.pid, *children_of(self.pid)):
            with contextlib.suppress(FileNotFoundError):
                # utime, stime, and those of exited children. The process name before them may contain any character
                # and ends at the last closing parenthesis.
                words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += sum(map(int, words[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Contestant:
    """A server and its load. `requests` is called before each turn, outside the measured time, and creates single-use
    values such as codes. `pin` is applied to the command of the load.
    """

    server: Server
    requests: Callable[[], Sequence[Request]]
    mode: str = REPEAT
    connections: int = CONNECTIONS
    pin: Callable[[Sequence[str]], Sequence[str]] = list

    def response(self) -> FixedResponse:
        return response_to(self.server, self.requests()[0])

    def load(self, seconds: float) -> dict[str, float]:
        plan = json.dumps({"requests": self.requests(), "mode": self.mode})
        used = self.server.cpu_seconds()
        done = subprocess.run(
            self.pin([sys.executable, "-m", "bench.load", str(self.server.port), str(self.connections), str(seconds)]),
            cwd=ROOT,
            env=environment(),
            input=plan.encode() + b"\n",
            stdout=subprocess.PIPE,
            timeout=60 + seconds,
            check=True,
        )
        figures: dict[str, float] = json.loads(done.stdout)
        per_request = (self.server.cpu_seconds() - used) / figures.pop("responses")
        return {**figures, "CPU µs": 1e6 * per_request}


def repeated_get(server: Server, path: str, headers: Mapping[str, str] | None = None) -> Contestant:
    return Contestant(server, lambda: [Request("GET", path, headers or {})])


def post_form(path: str, app: str, secret: str, /, **fields: str) -> Request:
    """A form sent by the app with this client id, which authenticates with its secret (HTTP Basic)."""
    basic = b64encode(f"{app}:{secret}".encode()).decode()
    headers = {"Authorization": f"Basic {basic}", "Content-Type": "application/x-www-form-urlencoded"}
    return Request("POST", path, headers, urlencode(fields))


def bearer_get(path: str, token: str) -> Request:
    return Request("GET", path, {"Authorization": f"Bearer {token}"})


def response_to(server: Server, request: Request) -> FixedResponse:
    response = httpx.request(
        request.method, f"http://127.0.0.1:{server.port}{request.path}", headers=request.headers, content=request.body
    ).raise_for_status()
    return [pair for pair in response.headers.items() if pair[0] not in SERVER_HEADERS], response.text


def measure(workspace: Workspace) -> list[Table]:
    with hub_process(workspace.subfolder("http")) as hub:
        hubs = {path: repeated_get(Server.of(hub), path) for path in PATHS}
        with bare_process({path: hub.response() for path, hub in hubs.items()}) as bare:
            return [
                compare(workspace, f"HTTP, GET {path}", {BARE: repeated_get(bare, path), HUB: hubs[path]})
                for path in PATHS
            ]


def compare(workspace: Workspace, title: str, contestants: Mapping[str, Contestant]) -> Table:
    seconds = workspace.budget.seconds(TURN)
    turns = run_interleaved(
        {name: partial(contestant.load, seconds) for name, contestant in contestants.items()}, workspace.budget.rounds
    )
    rates = {name: [turn["rate"] for turn in taken] for name, taken in turns.items()}
    more = {name: medians(taken) for name, taken in turns.items()}
    return table(f"{title}, {CONNECTIONS} connections", "requests/s", BARE, rates, more)


def medians(turns: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The medians of all columns except the rate and the throughput, which is meaningless for small responses."""
    excluded = ("rate", "MB/s")
    return {column: median(turn[column] for turn in turns) for column in turns[0] if column not in excluded}


@contextlib.contextmanager
def bare_process(
    responses: Mapping[str, FixedResponse], pin: Callable[[Sequence[str]], Sequence[str]] = list
) -> Iterator[Server]:
    process = subprocess.Popen(
        pin([sys.executable, "-m", "bench.bare_handler"]),
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(responses).encode() + b"\n")
            process.stdin.flush()
            yield Server(int(process.stdout.readline()), process.pid)
        finally:
            process.kill()
