"""Requests a second of a real `hubgate serve` beside a handler that only repeats the same bytes."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median

import httpx
from tests.bed.processes import ROOT, environment, hub_process

from bench.ground import Ground
from bench.harness import Table, interleaved, table

TURN = 1.5
CONNECTIONS = 32
PATHS = ("/healthz", "/oauth/jwks")
BARE, HUB = "bare ASGI handler", "hubgate serve"
# The HTTP server itself writes these.
OF_THE_SERVER = {"date", "server"}

# What a handler repeats: headers and body.
Answer = tuple[list[tuple[str, str]], str]


@dataclass(frozen=True)
class Contestant:
    port: int
    path: str
    token: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def answer(self) -> Answer:
        response = httpx.get(f"http://127.0.0.1:{self.port}{self.path}", headers=self.headers).raise_for_status()
        return [pair for pair in response.headers.items() if pair[0] not in OF_THE_SERVER], response.text

    def load(self, seconds: float) -> dict[str, float]:
        headers = [f"{name}: {value}" for name, value in self.headers.items()]
        command = [sys.executable, "-m", "bench.load", str(self.port), self.path, str(CONNECTIONS), str(seconds)]
        done = subprocess.run(
            [*command, *headers], cwd=ROOT, env=environment(), stdout=subprocess.PIPE, timeout=60 + seconds, check=True
        )
        figures: dict[str, float] = json.loads(done.stdout)
        return figures


def measure(ground: Ground) -> list[Table]:
    with hub_process(ground.subfolder("http")) as hub:
        hubs = {path: Contestant(port_of(hub.url), path) for path in PATHS}
        with bare_process({path: hub.answer() for path, hub in hubs.items()}) as bare_port:
            return [
                compare(ground, f"HTTP, GET {path}", {BARE: Contestant(bare_port, path), HUB: hubs[path]})
                for path in PATHS
            ]


def compare(ground: Ground, title: str, contestants: Mapping[str, Contestant]) -> Table:
    seconds = ground.budget.seconds(TURN)
    turns = interleaved(
        {name: partial(contestant.load, seconds) for name, contestant in contestants.items()}, ground.budget.rounds
    )
    rates = {name: [turn["rate"] for turn in taken] for name, taken in turns.items()}
    columns = [column for column in turns[BARE][0] if column != "rate"]
    more = {
        name: {column: median(turn[column] for turn in taken) for column in columns} for name, taken in turns.items()
    }
    return table(f"{title}, {CONNECTIONS} connections", "requests/s", BARE, rates, more)


@contextlib.contextmanager
def bare_process(answers: Mapping[str, Answer]) -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.bare"],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(answers).encode() + b"\n")
            process.stdin.flush()
            yield int(process.stdout.readline())
        finally:
            process.kill()


def port_of(url: str) -> int:
    return httpx.URL(url).port or 80
