"""Webhook deliveries with two common queues, BullMQ and Celery, on a Redis that syncs every write."""

import contextlib
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bed.node import BENCH as NODE_MODULES
from tests.bed.node import NODE
from tests.bed.processes import ROOT, until

from bench.cores import on_measured_core, on_other_cores
from bench.workspace import Workspace

BULLMQ, CELERY = "BullMQ", "Celery"
_QUEUES = ROOT / ".venv/bench/queues/bin"
_PROGRAMS = ROOT / "bench/peers"
# Concurrent requests: the hub's limit per address.
AT_ONCE = 64
# More Celery processes were not faster on one core.
CELERY_PROCESSES = 8


def missing() -> str | None:
    """An error message that says how to install the queues, or None."""
    absent = not (_QUEUES / "redis-server").exists() or not NODE_MODULES.exists()
    return "BullMQ, Celery and Redis are missing: make .venv/bench.stamp" if absent else None


def facts() -> dict[str, str]:
    redis = subprocess.run([_QUEUES / "redis-server", "--version"], capture_output=True, text=True, check=True)
    locked = json.loads((NODE_MODULES / "package.json").read_text())["dependencies"]
    celery = subprocess.run([_QUEUES / "celery", "--version"], capture_output=True, text=True, check=True)
    return {
        "redis": redis.stdout.split()[2].removeprefix("v=") + ", appendfsync always",
        "queues": f"BullMQ {locked['bullmq']}, Celery {celery.stdout.split()[0]}",
    }


@contextlib.contextmanager
def redis_process(workspace: Workspace, name: str) -> Iterator[Path]:
    """Run a Redis that syncs before it responds, as the hub's databases do, and yield the path of its socket."""
    folder = workspace.subfolder(f"redis-{name}")
    socket = folder / "s"
    options = {"port": "0", "unixsocket": str(socket), "dir": str(folder), "save": "", "appendonly": "yes"}
    flags = [word for key, value in {**options, "appendfsync": "always"}.items() for word in (f"--{key}", value)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(on_other_cores([str(_QUEUES / "redis-server"), *flags]), stdout=log, stderr=log)
    with process:
        try:
            until(lambda: socket.exists() or process.poll() is not None)
            assert process.poll() is None, (folder / "log").read_text()
            yield socket
        finally:
            process.terminate()


@dataclass(frozen=True)
class Peer:
    name: str
    folder: Path
    plan: Mapping[str, Any]

    @contextlib.contextmanager
    def run_worker(self) -> Iterator["subprocess.Popen[bytes]"]:
        with self._run(on_measured_core(self._worker), "deliver") as process:
            yield process

    @contextlib.contextmanager
    def run_producer(self) -> Iterator["subprocess.Popen[bytes]"]:
        """A producer that is ready to add the events of a turn."""
        with self._run(on_other_cores(self._producer), "commit") as process:
            yield process

    @property
    def _worker(self) -> Sequence[str]:
        if self.name == BULLMQ:
            return self._producer
        quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=error")
        return [str(_QUEUES / "celery"), "-A", "celery_app", "worker", f"-c{CELERY_PROCESSES}", *quiet]

    @property
    def _producer(self) -> Sequence[str]:
        if self.name == BULLMQ:
            return [str(NODE), "--input-type=module", "--eval", (_PROGRAMS / "bullmq.mjs").read_text()]
        return [str(_QUEUES / "python"), str(_PROGRAMS / "celery_app.py")]

    @contextlib.contextmanager
    def _run(self, command: Sequence[str], role: str) -> Iterator["subprocess.Popen[bytes]"]:
        with (self.folder / f"{role}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=NODE_MODULES if self.name == BULLMQ else _PROGRAMS,
                env={"PLAN": json.dumps({**self.plan, "role": role}), "PATH": "/usr/bin:/bin"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        with process:
            try:
                assert next_message(process) == "ready", (self.folder / f"{role}.log").read_text()
                yield process
            finally:
                process.terminate()


def next_message(process: "subprocess.Popen[bytes]") -> str:
    """The next `ready` or `done` in the output of a process; empty if it has exited."""
    assert process.stdout is not None
    return next((line.decode().strip() for line in process.stdout if line in (b"ready\n", b"done\n")), "")
