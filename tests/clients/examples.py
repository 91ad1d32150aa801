"""The programs of `examples/`, started as their README says, each in the environment of its libraries."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bed.clients import ENVIRONMENTS, Conversation
from tests.bed.node import NODE
from tests.bed.processes import ROOT, free_port, until

EXAMPLES = ROOT / "examples"


def python(environment: str, *arguments: str) -> list[str]:
    """A command for the environment of a lock file in requirements/clients; without a name, that of the tests."""
    interpreter = ENVIRONMENTS / environment / "bin/python" if environment else Path(sys.executable)
    assert interpreter.exists(), f"{interpreter} is missing: run make setup"
    return [str(interpreter), *arguments]


def node(*arguments: str) -> list[str]:
    return [str(NODE), *arguments]


@contextmanager
def running(command: list[str], home: Path, port: int = 0, **variables: str) -> Iterator[Conversation]:
    """Start a program; with a port, wait until it listens there."""
    defaults = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONUNBUFFERED": "1", "PORT": str(port)}
    process = subprocess.Popen(
        command,
        cwd=home,
        env={**defaults, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        if port:
            until(lambda: process.poll() is not None or _listens(port))
            assert process.poll() is None, process.communicate()[0]
        yield Conversation(process)
    finally:
        process.kill()
        print(process.communicate()[0])


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def new_site() -> tuple[int, str]:
    """A port, and an address with another host name than the hub's, so that a browser treats the two as two sites."""
    port = free_port()
    return port, f"http://localhost:{port}"
