"""The hub as a separate process with children, which tests may signal and kill."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from tests.bed.lean_http import LeanClient

if TYPE_CHECKING:
    from tests.bed import fork_server

ROOT = Path(__file__).parents[2]
HUBGATE = [sys.executable, "-m", "hubgate.cli"]
TEST_BUILD = [sys.executable, "-m", "tests.bed.testserve"]


def environment(**more: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HUBGATE_")}
    return {
        **inherited,
        "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}",
        "PYTHONWARNINGS": "error",
        # As `make` does: a shell that disables bytecode would let every process compile all modules again.
        "PYTHONDONTWRITEBYTECODE": "",
        **more,
    }


def hubgate(*arguments: str, cwd: Path, stdin: bytes = b"", **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a `hubgate` command to completion."""
    from tests.bed import fork_server

    command = [*HUBGATE, *arguments]
    status, out, err = fork_server.run(command, cwd, environment(**variables), stdin, seconds=120)
    return subprocess.CompletedProcess(command, status, out.decode(), err.decode())


@contextlib.contextmanager
def deliver_process(
    folder: Path, *flags: str, umask: int = -1, **variables: str
) -> "Iterator[fork_server.WarmProcess]":
    """`hubgate deliver`, forked from a warm process. Its first lines can be read from `stdout`."""
    from tests.bed import fork_server

    with (folder / "deliver.log").open("ab") as errors:
        process = fork_server.start([*HUBGATE, "deliver", *flags], folder, environment(**variables), errors, umask)
    assert process.stdout is not None
    with process.stdout:
        try:
            yield process
        finally:
            process.kill()
            process.wait()


class HubProcess:
    """`hubgate serve`, or its test build, by default on a random port.

    Its processes are forked from a warm one, unless the test is about the start itself: then they are `new`.
    """

    def __init__(
        self,
        folder: Path,
        *flags: str,
        program: Sequence[str] = (*HUBGATE, "serve"),
        new: bool = False,
        port: int = 0,
        umask: int = -1,
        **variables: str,
    ) -> None:
        from tests.bed import fork_server

        self.folder = folder
        self._errors = (folder / "stderr.log").open("ab")
        command, given = [*program, "--port", str(port), *flags], environment(**variables)
        self.process: subprocess.Popen[bytes] | fork_server.WarmProcess
        if new:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env=given,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                # A separate process group, so that a signal can reach the whole hub, as Ctrl-C in a terminal does.
                start_new_session=True,
                umask=umask,
            )
        else:
            self.process = fork_server.start(command, folder, given, self._errors, umask)
        self.url = self._address()

    @property
    def errors(self) -> str:
        return (self.folder / "stderr.log").read_text()

    def client(self) -> httpx.Client:
        return LeanClient(base_url=self.url, timeout=60)

    def children(self) -> list[int]:
        return children_of(self.process.pid)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.wait()

    def wait(self) -> int:
        status = self.process.wait(60)
        self._close()
        return status

    def kill_all(self) -> None:
        """Send SIGKILL to all processes of the hub at once, as in a power failure."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)
        # A child that is still dying holds the port.
        until(lambda: not _is_group_alive(self.process.pid))
        self._close()

    def _address(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        if "http" not in line:
            status = self.process.wait(60)
            raise RuntimeError(f"serve exited with {status}: {self.errors}")
        return line.split()[-1]

    def _close(self) -> None:
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._errors.close()


@contextlib.contextmanager
def hub_process(folder: Path, *flags: str, **options: object) -> Iterator[HubProcess]:
    hub = HubProcess(folder, *flags, **options)  # type: ignore[arg-type]
    try:
        yield hub
    finally:
        if hub.process.poll() is None:
            hub.kill_all()


def read_terminal(terminal: int) -> bytes:
    """Read the remaining output of a terminal once all writers have closed it, and close it."""
    output = b""
    # Reading a terminal at its end raises an error instead of returning nothing.
    with contextlib.suppress(OSError):
        while piece := os.read(terminal, 4096):
            output += piece
    os.close(terminal)
    return output


@dataclass(frozen=True)
class _Status:
    """The first fields of /proc/PID/stat. Running `ps` in a loop that waits takes longer than what it waits for."""

    pid: int
    state: str
    parent: int
    group: int
    threads: int

    @property
    def is_alive(self) -> bool:
        """False for a zombie, unless it has other threads: these still hold its files and ports."""
        return self.state not in "ZX" or self.threads > 1


def _status(pid: int) -> _Status | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The program's name, in parentheses, may contain spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return _Status(pid, fields[0], int(fields[1]), int(fields[2]), int(fields[17]))


def _all_statuses() -> list[_Status]:
    found = [_status(int(folder.name)) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    return [status for status in found if status]


def _is_group_alive(group: int) -> bool:
    return any(status.group == group and status.is_alive for status in _all_statuses())


def free_port() -> int:
    """A port that the system assigns to no other socket while a killed hub is down."""
    for port in random.sample(range(20_000, 30_000), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


def children_of(pid: int) -> list[int]:
    return [status.pid for status in _all_statuses() if status.parent == pid]


def is_alive(pid: int) -> bool:
    """Whether a process runs; false for a zombie."""
    status = _status(pid)
    return status is not None and status.is_alive


def until(condition: object, seconds: float = 120.0, every: float = 0.02) -> None:
    """Wait until the condition is true; `every` is the pause between checks. A timeout fails the test."""
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        if time.monotonic() > deadline:
            raise AssertionError("the condition was not met in time")
        time.sleep(every)
