"""The receiver of webhooks as a process beside the contestants."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
from tests.bed.processes import ROOT, environment

from bench.cores import aside


@dataclass(frozen=True)
class Receiver:
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def timed_url(self) -> str:
        """What is sent here is kept, with the time it came."""
        return f"http://127.0.0.1:{self.port}/timed"

    def count(self) -> tuple[int, float]:
        """Received so far, and the processor time it took."""
        said = httpx.get(f"http://127.0.0.1:{self.port}/count").json()
        return said["count"], said["processor"]

    def timed(self) -> list[tuple[float, str]]:
        """When each came and its body, since last asked."""
        return [(at, body) for at, body in httpx.get(self.timed_url).json()]


@contextlib.contextmanager
def receiver_process() -> Iterator[Receiver]:
    process = subprocess.Popen(
        aside([sys.executable, "-m", "bench.receiver"]),
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
