"""Requests a second of a real `hubgate serve` beside a handler that only repeats the same bytes."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
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


def measure(ground: Ground) -> list[Table]:
    seconds = ground.budget.seconds(TURN)
    with hub_process(ground.subfolder("http")) as hub:
        hub_port = httpx.URL(hub.url).port or 80
        with bare_process(hub.url) as bare_port:
            return [_compare(path, {BARE: bare_port, HUB: hub_port}, seconds, ground.budget.rounds) for path in PATHS]


def _compare(path: str, ports: dict[str, int], seconds: float, rounds: int) -> Table:
    turns = interleaved({name: partial(load, port, path, seconds) for name, port in ports.items()}, rounds)
    rates = {name: [turn["rate"] for turn in taken] for name, taken in turns.items()}
    columns = [column for column in turns[BARE][0] if column != "rate"]
    more = {
        name: {column: median(turn[column] for turn in taken) for column in columns} for name, taken in turns.items()
    }
    return table(f"HTTP, GET {path}, {CONNECTIONS} connections", "requests/s", BARE, rates, more)


def load(port: int, path: str, seconds: float) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.load", str(port), path, str(CONNECTIONS), str(seconds)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, timeout=60 + seconds, check=True
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


@contextlib.contextmanager
def bare_process(hub_url: str) -> Iterator[int]:
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
            process.stdin.write(json.dumps({path: _answer(hub_url + path) for path in PATHS}).encode() + b"\n")
            process.stdin.flush()
            yield int(process.stdout.readline())
        finally:
            process.kill()


def _answer(url: str) -> tuple[list[tuple[str, str]], str]:
    response = httpx.get(url).raise_for_status()
    return [pair for pair in response.headers.items() if pair[0] not in OF_THE_SERVER], response.text
