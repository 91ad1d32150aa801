"""The hub as its operator runs it: a process of its own, with children, to be signalled and killed."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[2]
HUBGATE = [sys.executable, "-m", "hubgate.cli"]
TEST_BUILD = [sys.executable, "-m", "tests.bed.testbuild"]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HUBGATE_")}
    return {**kept, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "PYTHONWARNINGS": "error", **more}


def hubgate(*arguments: str, cwd: Path, stdin: bytes = b"", **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run one command to its end."""
    from tests.bed import warm

    status, out, err = warm.run(arguments, cwd, environment(**variables), stdin, seconds=60)
    return subprocess.CompletedProcess([*HUBGATE, *arguments], status, out.decode(), err.decode())


class HubProcess:
    """`hubgate serve` (or the test build of it) on a random port."""

    def __init__(
        self,
        folder: Path,
        *flags: str,
        program: Sequence[str] = (*HUBGATE, "serve"),
        port: int = 0,
        umask: int = -1,
        **variables: str,
    ) -> None:
        self.folder = folder
        self._errors = (folder / "stderr.log").open("ab")
        self.process = subprocess.Popen(
            [*program, "--port", str(port), *flags],
            cwd=folder,
            env=environment(**variables),
            stdout=subprocess.PIPE,
            stderr=self._errors,
            # A group of its own, so that one signal can reach the whole hub as Ctrl-C in a terminal does.
            start_new_session=True,
            umask=umask,
        )
        self.url = self._address()

    @property
    def errors(self) -> str:
        return (self.folder / "stderr.log").read_text()

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=20, verify=False)

    def children(self) -> list[int]:
        return children_of(self.process.pid)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.wait()

    def wait(self) -> int:
        status = self.process.wait(20)
        self._close()
        return status

    def kill_all(self) -> None:
        """SIGKILL to every process of the hub at once, as a power cut would."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(20)
        self._close()

    def _address(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        if "http" not in line:
            status = self.process.wait(20)
            raise RuntimeError(f"serve ended with {status}: {self.errors}")
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


def said_at(terminal: int) -> bytes:
    """Whatever is left to read once nobody writes to it any more; then it is closed."""
    said = b""
    # At its end a terminal fails rather than give nothing.
    with contextlib.suppress(OSError):
        while piece := os.read(terminal, 4096):
            said += piece
    os.close(terminal)
    return said


def children_of(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def is_alive(pid: int) -> bool:
    """A zombie nobody has reaped is not."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout.strip() != "" and not found.stdout.startswith("Z")


def until(condition: object, seconds: float = 60.0) -> None:
    """Wait for something another process does; a failed wait fails the test."""
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain")
        time.sleep(0.02)
