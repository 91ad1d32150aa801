"""A fork server for `hubgate` commands, including `serve`: importing the modules takes longer than most commands run.

Each command is a real process with a separate folder, environment and streams, and can be killed.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, NoReturn

from tests.bed.processes import HUBGATE, environment, until

from hubgate.cli.main import main

# Alembic creates the schema of each new database.
_MODULES = (
    "tests.bed.testserve",
    "hubgate.server.worker.web",
    "hubgate.server.worker.background",
    "alembic.command",
    "sqlalchemy.ext.asyncio",
)


class WarmProcess:
    """A process of the fork server, with the interface of `subprocess.Popen`."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        streams: Sequence[int],
        umask: int = -1,
    ) -> None:
        """`command` is a Python, -m, a module and arguments; `streams` are its standard input, output and error."""
        self.returncode: int | None = None
        # The other end of this pipe, for a process whose output the test reads.
        self.stdout: IO[bytes] | None = None
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(_address())
        request = json.dumps([list(command[2:]), str(cwd), dict(env), umask]).encode()
        socket.send_fds(self._connection, [len(request).to_bytes(4)], streams)
        self._connection.sendall(request)
        self.pid = int.from_bytes(self._received())

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._connection.settimeout(timeout)
            try:
                status = self._received()
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0) from None
            self._connection.close()
            self.returncode = int.from_bytes(status, signed=True)
        return self.returncode

    def _received(self) -> bytes:
        number = self._connection.recv(4)
        if not number:
            raise RuntimeError("the fork server has died")
        return number

    def send_signal(self, sig: int) -> None:
        # The fork server may have waited for the process and not reported its status yet.
        with contextlib.suppress(ProcessLookupError):
            if self.poll() is None:
                os.kill(self.pid, sig)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run(
    command: Sequence[str], cwd: Path, given: Mapping[str, str], stdin: bytes, seconds: float, umask: int = -1
) -> tuple[int, bytes, bytes]:
    """Run a command to completion; its exit status, standard output and standard error."""
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        source.write(stdin)
        source.seek(0)
        process = WarmProcess(command, cwd, given, [source.fileno(), out.fileno(), err.fileno()], umask)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        out.seek(0)
        err.seek(0)
        return status, out.read(), err.read()


def start(
    command: Sequence[str], cwd: Path, given: Mapping[str, str], errors: IO[bytes], umask: int = -1
) -> WarmProcess:
    """Start a process that goes on running. Its output can be read from `stdout`."""
    read, write = os.pipe()
    with Path(os.devnull).open("rb") as source:
        process = WarmProcess(command, cwd, given, [source.fileno(), write, errors.fileno()], umask)
    os.close(write)
    process.stdout = os.fdopen(read, "rb")
    return process


@cache
def _address() -> str:
    """Start the fork server; the address of its socket. The server exits when this process does."""
    folder = Path(tempfile.mkdtemp(prefix="hubgate-warm-"))
    address = str(folder / "s")
    process = subprocess.Popen([sys.executable, "-m", "tests.bed.fork_server", address], env=environment(), cwd="/")
    atexit.register(_end, process, folder)
    until(lambda: Path(address).exists())
    return address


def _end(process: "subprocess.Popen[bytes]", folder: Path) -> None:
    process.kill()
    process.wait()
    shutil.rmtree(folder, ignore_errors=True)


def _serve(address: str) -> NoReturn:
    for module in pkgutil.walk_packages(importlib.import_module("hubgate.cli").__path__, "hubgate.cli."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in _MODULES:
        importlib.import_module(name)
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{address}.new")
        listener.listen(64)
        Path(f"{address}.new").rename(address)
        # The children below are not waited for.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        listener.settimeout(1)
        parent = os.getppid()
        while os.getppid() == parent:
            with contextlib.suppress(TimeoutError):
                connection, _ = listener.accept()
                with connection:
                    if os.fork() == 0:
                        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                        listener.close()
                        _handle(connection)
    shutil.rmtree(Path(address).parent, ignore_errors=True)
    os._exit(0)


def _handle(connection: socket.socket) -> NoReturn:
    connection.setblocking(True)
    head, streams, _, _ = socket.recv_fds(connection, 4, 3)
    with connection.makefile("rb") as reader:
        command, folder, variables, umask = json.loads(reader.read(int.from_bytes(head)))
    pid = os.fork()
    if pid == 0:
        connection.close()
        # A separate process group, so that a signal can reach the whole hub, as Ctrl-C in a terminal does.
        os.setsid()
        if umask >= 0:
            os.umask(umask)
        _run_command(command, folder, variables, streams)
    connection.sendall(pid.to_bytes(4))
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    connection.sendall(status.to_bytes(4, signed=True))
    os._exit(0)


def _run_command(command: list[str], folder: str, variables: dict[str, str], streams: list[int]) -> NoReturn:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    for target, given in enumerate(streams):
        os.dup2(given, target)
        os.close(given)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    module, *arguments = command
    sys.argv = [module, *arguments]
    status = 1
    try:
        if module == HUBGATE[2]:
            main(arguments)
        else:
            importlib.import_module(module).main()
            status = 0
    except SystemExit as ended:
        status = int(ended.code or 0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    _serve(sys.argv[1])
