"""A fork server for `hubgate` commands: importing the modules takes longer than most commands run.

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
from typing import NoReturn

from tests.bed.processes import environment, until


def run(
    arguments: Sequence[str], cwd: Path, given: Mapping[str, str], stdin: bytes, seconds: float
) -> tuple[int, bytes, bytes]:
    """Run `hubgate ARGUMENTS`; the exit status, standard output and standard error."""
    with (
        tempfile.TemporaryFile() as source,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        socket.socket(socket.AF_UNIX) as connection,
    ):
        source.write(stdin)
        source.seek(0)
        connection.settimeout(seconds)
        connection.connect(_address())
        request = json.dumps([list(arguments), str(cwd), dict(given)]).encode()
        socket.send_fds(connection, [len(request).to_bytes(4)], [source.fileno(), out.fileno(), err.fileno()])
        connection.sendall(request)
        pid = int.from_bytes(connection.recv(4))
        try:
            status = int.from_bytes(connection.recv(4), signed=True)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise
        out.seek(0)
        err.seek(0)
        return status, out.read(), err.read()


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
        arguments, folder, variables = json.loads(reader.read(int.from_bytes(head)))
    pid = os.fork()
    if pid == 0:
        connection.close()
        _run_command(arguments, folder, variables, streams)
    connection.sendall(pid.to_bytes(4))
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    connection.sendall(status.to_bytes(4, signed=True))
    os._exit(0)


def _run_command(arguments: list[str], folder: str, variables: dict[str, str], streams: list[int]) -> NoReturn:
    from hubgate.cli.main import main

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    for target, given in enumerate(streams):
        os.dup2(given, target)
        os.close(given)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    status = 1
    try:
        main(arguments)
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
