"""`hubgate serve` with children that are forked from the parent: new Python processes would import all modules again.

They are real processes, with the same pipes and signals as those of the product. `configure` and `run` are those of the
command.
"""

import argparse
import contextlib
import gc
import importlib
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NoReturn

from hubgate.cli import serve
from hubgate.cli.serve import configure as configure
from hubgate.server.worker.supervisor import Modules


class ForkedProcess:
    """A forked child with the interface of `subprocess.Popen`."""

    def __init__(self, pid: int, stdin: IO[bytes]) -> None:
        self.pid, self.stdin = pid, stdin
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            time.sleep(0.005)
        return status

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def fork_module(module: str, inherited: Sequence[int], environment: Mapping[str, str]) -> ForkedProcess:
    """Run `main()` of a module in a forked child."""
    read, write = os.pipe()
    sys.stdout.flush()
    with warnings.catch_warnings():
        # Newer Pythons warn if another thread runs. The parent's only thread serves metrics, and the child does not.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        _run_child(module, read, inherited, environment)
    os.close(read)
    return ForkedProcess(pid, os.fdopen(write, "wb"))


def _run_child(module: str, stdin: int, inherited: Sequence[int], environment: Mapping[str, str]) -> NoReturn:
    os.dup2(stdin, 0)
    _close_all_except({0, 1, 2, *inherited})
    for caught in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(caught, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [module, *map(str, inherited)]
    # The parent's objects must not close descriptors that the child opens with the same numbers.
    gc.freeze()
    try:
        importlib.import_module(module).main()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    os._exit(1)


def _close_all_except(wanted: set[int]) -> None:
    for descriptor in [int(file.name) for file in Path("/dev/fd").iterdir()]:
        if descriptor not in wanted:
            # One of them was the listing itself.
            with contextlib.suppress(OSError):
                os.close(descriptor)


def run(options: argparse.Namespace) -> int:
    return serve.run(options, Modules(start=fork_module))
