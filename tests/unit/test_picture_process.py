"""The process that decodes uploaded pictures can do nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.bed.pictures import picture

from hubgate.server.accounts.pictures import reencoding
from hubgate.server.errors import FieldErrors

_PREPARED = """
import os, runpy, socket, sys
steps = runpy.run_path(sys.argv[1])
steps["limit"].__globals__["CPU_SECONDS"] = {seconds}
steps["limit"]()
steps["warm_up"]([64])
steps["confine"]()
try:
    {attempt}
except OSError as error:
    os._exit(40 + error.errno)
except MemoryError:
    os._exit(39)
os._exit(0)
"""
_REFUSED, _NO_MEMORY = 41, 39


@pytest.mark.parametrize(
    ("attempt", "status"),
    [
        ("socket.socket()", _REFUSED),
        ("socket.socketpair()", _REFUSED),
        ("open('/etc/passwd')", _REFUSED),
        ("open('/tmp/planted', 'w')", _REFUSED),
        ("os.listdir('/')", _REFUSED),
        ("os.fork()", _REFUSED),
        ("os.execv('/bin/true', ['true'])", _REFUSED),
        ("os.kill(os.getppid(), 0)", _REFUSED),
        ("bytearray(600_000_000)", _NO_MEMORY),
        ("while True: pass", -9),
        ("sum(range(1000))", 0),
    ],
    ids=["socket", "socket pair", "read", "write", "list", "fork", "exec", "kill", "memory", "time", "nothing"],
)
def test_confined_process_can_only_compute(attempt: str, status: int) -> None:
    # With those of its start.
    seconds = 1 if attempt.startswith("while") else 60
    program = _PREPARED.format(attempt=attempt, seconds=seconds)
    command = [sys.executable, "-I", "-c", program, str(reencoding.PROGRAM)]
    done = subprocess.run(command, timeout=60, check=False, capture_output=True)
    assert done.returncode == status, done.stderr


def test_output_has_every_size() -> None:
    command = [sys.executable, "-I", str(reencoding.PROGRAM), "64", "256"]
    done = subprocess.run(command, input=picture(), timeout=60, check=False, capture_output=True, env={})
    assert done.returncode == 0, done.stderr
    small, large = reencoding._split(done.stdout)
    assert 0 < len(small) < len(large) < 50_000


@pytest.mark.parametrize(
    ("program", "seconds", "error"),
    [
        ("import sys; sys.stdout.buffer.write(bytes(50_000_000))", 60.0, FieldErrors),
        ("import sys\nwhile True: sys.stdout.buffer.write(bytes(100_000))", 1.0, FieldErrors),
        ("import time; time.sleep(600)", 1.0, FieldErrors),
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", 60.0, FieldErrors),
        ("import a_missing_library", 60.0, RuntimeError),
    ],
    ids=["long output", "endless output", "no end", "crash", "broken installation"],
)
async def test_failing_process_is_contained(
    tmp_path: Path, program: str, seconds: float, error: type[Exception]
) -> None:
    """A decoder that was taken over cannot fill the hub's memory. A broken installation is logged, and the user does
    not read that the picture is invalid.
    """
    path = tmp_path / "program.py"
    path.write_text(program)
    with pytest.raises(error):
        await reencoding.reencode("1", picture(), program=path, seconds=seconds)
