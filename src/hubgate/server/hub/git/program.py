"""The git program, run so that nothing of the machine it runs on decides what it does."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from pathlib import Path
from time import monotonic

from hubgate.server.errors import NotFound
from hubgate.server.jobs.caller import while_wanted

_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "LC_ALL": "C.UTF-8",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    # The folder may belong to another user: a backup put back by root, a shared file system.
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
}


_NICENESS = 10


class GitFailed(Exception):
    """`said` is what it printed; it may name paths of this machine and is for the log alone."""

    def __init__(self, command: str, status: int, said: str) -> None:
        super().__init__(f"git {command} ended with {status}: {said.strip()[:500]}")
        self.said = said


async def start(
    arguments: Sequence[str], folder: Path, more: Mapping[str, str] | None = None
) -> asyncio.subprocess.Process:
    """With pipes on all three ends. The caller sees it ended, whatever happens."""
    try:
        return await asyncio.create_subprocess_exec(
            "git",
            *arguments,
            cwd=folder,
            env={**_ENVIRONMENT, "GIT_DIR": str(folder), **(more or {})},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # A signal to our group, such as Ctrl-C, is ours to pass on. Not a session of its own: Linux gives each
            # session an equal part of the processors (autogroups), and priorities count only within one.
            process_group=0,
        )
    except FileNotFoundError as error:
        if str(error.filename) != str(folder):
            raise
        # Deleted meanwhile.
        raise NotFound("Repository not found.", code="RepoNotFound") from None


async def run(
    arguments: Sequence[str],
    folder: Path,
    given: bytes = b"",
    more: Mapping[str, str] | None = None,
    *,
    seconds: float,
    gently: bool = False,
) -> bytes:
    """What it printed; GitFailed if it did not end well, Unavailable if it did not end in time. It is ended when the
    client of a reading request leaves. `gently`: whatever else the machine has to do goes first.
    """
    process = await start(arguments, folder, more)
    try:
        if gently:
            give_way(process)
        out, err = await while_wanted(process.communicate(given), seconds)
    finally:
        await end(process)
    if process.returncode:
        raise GitFailed(arguments[0], process.returncode, err.decode(errors="replace"))
    return out


async def lines(
    arguments: Sequence[str], folder: Path, given: bytes, seconds: float, more: Mapping[str, str] | None = None
) -> AsyncGenerator[list[bytes], None]:
    """What it prints, as many whole lines as come at once, run gently. Ended and bounded as by `run`; `given` is short
    enough to be taken at once.
    """
    process, until = await start(arguments, folder, more), monotonic() + seconds
    try:
        if process.stdin is None or process.stdout is None:
            raise ValueError("started without pipes")
        give_way(process)
        process.stdin.write(given)
        process.stdin.close()
        begun = b""
        while part := await while_wanted(process.stdout.read(_CHUNK), until - monotonic()):
            *whole, begun = (begun + part).split(b"\n")
            yield whole
        said, status = await complaints(process), await process.wait()
        if status:
            raise GitFailed(arguments[0], status, said)
    finally:
        await end(process)


def give_way(process: asyncio.subprocess.Process) -> None:
    """Whatever else the machine has to do goes first. With all that it started: it leads a group of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.setpriority(os.PRIO_PGRP, process.pid, _NICENESS)


# Of what it complains about: enough to find the cause, however much it has to say.
_MOST_SAID = 16 * 1024
_CHUNK = 64 * 1024


async def feed(process: asyncio.subprocess.Process, parts: AsyncIterator[bytes]) -> None:
    """Give it `parts` until it has enough, then the end."""
    if process.stdin is None:
        raise ValueError("started without a pipe")
    # It may stop reading before the end: why, it says elsewhere.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        try:
            async for part in parts:
                process.stdin.write(part)
                await process.stdin.drain()
        finally:
            process.stdin.close()


async def complaints(process: asyncio.subprocess.Process) -> str:
    """The beginning of what it says on its error channel, which is read to the end: full, it would stop the program."""
    if process.stderr is None:
        raise ValueError("started without a pipe")
    said = b""
    while part := await process.stderr.read(_CHUNK):
        said = (said + part)[:_MOST_SAID]
    return said.decode(errors="replace")


async def end(process: asyncio.subprocess.Process) -> None:
    """At once, with whatever it started: it leads a group of its own."""
    # The public face of a process closes no pipe: one whose reader stopped half-way would stay open for ever.
    transport: asyncio.SubprocessTransport = process._transport  # type: ignore[attr-defined]  # noqa: SLF001
    try:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            for descriptor in (0, 1, 2):
                # Nor is a process over, for whoever waits, before the end of each pipe was seen.
                if pipe := transport.get_pipe_transport(descriptor):
                    pipe.close()
            await process.wait()
    finally:
        transport.close()
