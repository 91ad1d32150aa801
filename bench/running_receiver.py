"""Starts `bench.receiver` in a separate process and reads its figures."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
from tests.bed.processes import ROOT, environment

from bench.cores import on_other_cores


@dataclass(frozen=True)
class Receiver:
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def timed_url(self) -> str:
        """The URL at which deliveries are stored with the time of receipt."""
        return f"http://127.0.0.1:{self.port}/timed"

    def count(self) -> tuple[int, float]:
        """The number of deliveries received so far, and the CPU time used."""
        figures = httpx.get(f"http://127.0.0.1:{self.port}/count").json()
        return figures["count"], figures["cpu"]

    def timed(self) -> list[tuple[float, str]]:
        """The time and the body of each delivery since the last call."""
        return [(at, body) for at, body in httpx.get(self.timed_url).json()]


@contextlib.contextmanager
def receiver_process() -> Iterator[Receiver]:
    process = subprocess.Popen(
        on_other_cores([sys.executable, "-m", "bench.receiver"]),
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        try:
            assert process.stdout is not None
            yield Receiver(int(process.stdout.readline()))
        finally:
            process.kill()
