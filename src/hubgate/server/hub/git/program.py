"""Runs the git program, isolated from the configuration of the machine, and checks its version."""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import IO

from hubgate.server.errors import NotFound, StartupError
from hubgate.server.hub.git.process import Process
from hubgate.server.jobs.caller import while_client_waits

_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "LC_ALL": "C.UTF-8",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    # The folder may belong to another user: a backup restored by root, a shared file system.
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
}


_NICENESS = 10


class GitFailed(Exception):
    """A git program failed. `stderr` is its output, which may contain local paths: for the log only."""

    def __init__(self, command: str, status: int, stderr: str) -> None:
        super().__init__(f"git {command} exited with status {status}: {stderr.strip()[:500]}")
        self.stderr = stderr


async def start(arguments: Sequence[str], folder: Path, env: Mapping[str, str] | None = None) -> Process:
    """Start git with pipes for stdin, stdout and stderr. The caller must call its `kill` in all cases."""
    try:
        return await Process.start(["git", *arguments], folder, {**_ENVIRONMENT, "GIT_DIR": str(folder), **(env or {})})
    except FileNotFoundError as error:
        if str(error.filename) != str(folder):
            raise
        raise _deleted() from None


def failure(command: str, status: int, stderr: str, folder: Path) -> GitFailed | NotFound:
    """The error for a git program that failed: NotFound if the folder was deleted while it ran."""
    return GitFailed(command, status, stderr) if folder.exists() else _deleted()


def _deleted() -> NotFound:
    return NotFound("Repository not found", code="RepoNotFound")


async def run(
    arguments: Sequence[str],
    folder: Path,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    *,
    seconds: float,
    low_priority: bool = False,
) -> bytes:
    """Run git and return its output. Raises GitFailed if git fails, NotFound if the folder was deleted concurrently,
    Unavailable after `seconds`. Git is killed when the client of a read request disconnects.
    """
    return (await run_with_status(arguments, folder, stdin, env, seconds=seconds, low_priority=low_priority))[1]


async def run_with_status(
    arguments: Sequence[str],
    folder: Path,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    *,
    seconds: float,
    low_priority: bool = False,
    accepted: Collection[int] = (0,),
) -> tuple[int, bytes]:
    """Like `run`, for programs whose exit status is a result: return the status, one of `accepted`, and the output."""
    process = await start(arguments, folder, env)
    try:
        if low_priority:
            lower_priority(process)
        out, err = await while_client_waits(communicate(process, stdin), seconds)
    finally:
        await process.kill()
    status = process.returncode or 0
    if status not in accepted:
        raise failure(arguments[0], status, err.decode(errors="replace"), folder)
    return status, out


async def communicate(process: Process, stdin: bytes = b"") -> tuple[bytes, bytes]:
    """Write the input and return stdout and stderr, once the program has ended."""
    feeding = _feed(process.stdin, stdin)
    _, out, err = await asyncio.gather(feeding, process.stdout.read(), process.stderr.read())
    await process.wait()
    return out, err


async def _feed(pipe: asyncio.StreamWriter, stdin: bytes) -> None:
    """Write the input and close the pipe. A program that ends without reading its input has a reason, which its status
    and its output say.
    """
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        if not pipe.is_closing():
            pipe.write(stdin)
            await pipe.drain()
    pipe.close()


async def lines(
    arguments: Sequence[str], folder: Path, stdin: bytes, seconds: float, env: Mapping[str, str] | None = None
) -> AsyncGenerator[list[bytes], None]:
    """Run git at low priority and yield the complete lines of each chunk of output. Limits as in `run`; `stdin` must
    fit into the pipe's buffer.
    """
    process, deadline = await start(arguments, folder, env), monotonic() + seconds
    try:
        lower_priority(process)
        await _feed(process.stdin, stdin)
        partial = b""
        while part := await while_client_waits(process.stdout.read(_CHUNK), deadline - monotonic()):
            *complete, partial = (partial + part).split(b"\n")
            yield complete
        stderr, status = await read_stderr(process), await process.wait()
        if status:
            raise failure(arguments[0], status, stderr, folder)
    finally:
        await process.kill()


async def beginning(arguments: Sequence[str], folder: Path, size: int, seconds: float) -> bytes:
    """Run git at low priority and return its output, at most `size` bytes; git is killed after these. Other limits as
    in `run`.
    """
    process, deadline = await start(arguments, folder), monotonic() + seconds
    try:
        lower_priority(process)
        process.stdin.close()
        output = bytearray()
        while len(output) < size:
            part = await while_client_waits(process.stdout.read(_CHUNK), deadline - monotonic())
            if not part:
                stderr, status = await read_stderr(process), await process.wait()
                if status:
                    raise failure(arguments[0], status, stderr, folder)
                break
            output += part
        return bytes(output[:size])
    finally:
        await process.kill()


async def copy_output(arguments: Sequence[str], folder: Path, target: IO[bytes], limit: int, seconds: float) -> bool:
    """Run git at low priority and write its output to a file. False if there is more than `limit`: git is then killed.
    Other limits as in `run`.
    """
    process, deadline = await start(arguments, folder), monotonic() + seconds
    try:
        lower_priority(process)
        process.stdin.close()
        while part := await while_client_waits(process.stdout.read(_CHUNK), deadline - monotonic()):
            limit -= len(part)
            if limit < 0:
                return False
            target.write(part)
        stderr, status = await read_stderr(process), await process.wait()
        if status:
            raise failure(arguments[0], status, stderr, folder)
        return True
    finally:
        await process.kill()


def lower_priority(process: Process) -> None:
    """Lower the priority of a program and of the processes in its group."""
    with contextlib.suppress(ProcessLookupError):
        os.setpriority(os.PRIO_PGRP, process.pid, _NICENESS)


# Bytes of stderr that are stored: enough to find the cause.
_MAX_STDERR_BYTES = 16 * 1024
_CHUNK = 64 * 1024


async def feed(process: Process, parts: AsyncIterator[bytes]) -> None:
    """Write `parts` to stdin until the program stops reading, then close it."""
    # The program may stop reading early; the reason is on stderr.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        try:
            async for part in parts:
                # uvloop raises RuntimeError for a write after the other end was closed.
                if process.stdin.is_closing():
                    break
                process.stdin.write(part)
                await process.stdin.drain()
        finally:
            process.stdin.close()


async def read_stderr(process: Process) -> str:
    """The beginning of stderr. All of stderr is read, since a full pipe would block the program."""
    stderr = b""
    while part := await process.stderr.read(_CHUNK):
        stderr = (stderr + part)[:_MAX_STDERR_BYTES]
    return stderr.decode(errors="replace")


MIN_VERSION = (2, 39)
_VERSION = re.compile(r"git version (\d+)\.(\d+)[\w.-]*")


def require_git() -> str:
    """Return the version of git; raise StartupError if git is missing or too old."""
    oldest = ".".join(map(str, MIN_VERSION))
    # Ctrl-C also reaches git, and an interrupted git would look broken. A child inherits the blocked signals.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        output = subprocess.run(["git", "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise StartupError(f"hubgate needs git {oldest} or newer, and git cannot be run here. Install it.") from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    found = _VERSION.match(output)
    if found is None or (int(found[1]), int(found[2])) < MIN_VERSION:
        raise StartupError(f"hubgate needs git {oldest} or newer; this is {output.strip()[:100]}.")
    return found[0].removeprefix("git version ")
