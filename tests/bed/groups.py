"""Runs the suite as two pytest processes at once; `make test` and `make test-all` call it.

Fault tests mostly wait for processes to die and to start, so they run beside the others with separate workers, and with
a higher priority: a process that misses its heartbeats because it gets no CPU time looks dead. Their output follows
when both are finished. Ctrl-C reaches both, and the exit status is 0 only if both passed.

    python -m tests.bed.groups WORKERS FAULT_WORKERS [options of pytest]
"""

import contextlib
import os
import subprocess
import sys
import tempfile
from typing import IO, Any

from tests.bed.processes import ROOT
from tests.bed.times import FOLDER

# Of all tests but the fault tests.
_NICENESS = 5


def run(workers: str, fault_workers: str, options: list[str]) -> int:
    _compile_tests()
    with tempfile.TemporaryFile() as faults_output:
        faults = _start("faults", fault_workers, ["tests/faults", *options], faults_output)
        # Selected by folder, not by marker, so that the workers of the fault tests need not import all other tests.
        others = _start("others", workers, ["--ignore", "tests/faults", *options], None)
        os.setpriority(os.PRIO_PROCESS, others.pid, _NICENESS)
        statuses = {"all other tests": _finished(others), "fault tests": _finished(faults)}
        faults_output.seek(0)
        print("\n======== fault tests ========", flush=True)
        sys.stdout.buffer.write(faults_output.read())
    for name, status in statuses.items():
        print(f"{name}: {f'FAILED with status {status}' if status else 'passed'}")
    return int(any(statuses.values()))


def _compile_tests() -> None:
    """Compile the tests of a fresh clone once, in two processes. Otherwise every worker compiles all of them."""
    folders = sorted({file.parent for file in (ROOT / "tests").glob("*/test_*.py")})
    if all((folder / "__pycache__").exists() for folder in folders):
        return
    halves = [
        subprocess.Popen([sys.executable, "-m", "pytest", "-q", "--collect-only", *half], stdout=subprocess.DEVNULL)
        for half in (folders[::2], folders[1::2])
    ]
    for half in halves:
        half.wait()


def _start(name: str, workers: str, options: list[str], output: IO[bytes] | None) -> "subprocess.Popen[bytes]":
    command: list[Any] = [sys.executable, "-m", "pytest", "-q", "-n", workers, "--dist", "worksteal"]
    # One cache of failed tests, for `--lf`: two would overwrite each other.
    cache = ["-p", "no:cacheprovider"] if output else []
    return subprocess.Popen(
        [*command, *cache, "--times", FOLDER / f"{name}.json", *options],
        cwd=ROOT,
        stdout=output,
        stderr=subprocess.STDOUT if output else None,
    )


def _finished(process: "subprocess.Popen[bytes]") -> int:
    """Wait, also after Ctrl-C: pytest stops its workers and servers first."""
    while True:
        with contextlib.suppress(KeyboardInterrupt):
            return process.wait()


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2], sys.argv[3:]))
