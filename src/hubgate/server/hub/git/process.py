"""A running program with three pipes, like asyncio's subprocesses, but started with vfork.

uvloop starts programs with fork, which copies the page tables of the whole server: 6 ms of CPU time for a git program
that otherwise takes 2 ms. `subprocess.Popen` uses vfork.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO


class Process:
    """A program in a separate group, so that Ctrl-C reaches only our process. Not in a separate session: Linux gives
    each session an equal share of the processors (autogroups), and priorities count only within a session.
    """

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader

    @classmethod
    async def start(cls, arguments: Sequence[str], folder: Path, env: Mapping[str, str]) -> "Process":
        """Raises FileNotFoundError if the program or the folder does not exist. The caller must call `kill` in all
        cases.
        """
        process = cls(arguments, folder, env)
        # To its end, even if the caller is cancelled: a pipe has one owner, which closes its descriptor once.
        connecting = asyncio.ensure_future(process._connect())
        try:
            await asyncio.shield(connecting)
        except BaseException:
            await asyncio.wait({connecting})
            await process.kill()
            raise
        return process

    def __init__(self, arguments: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        pipe = subprocess.PIPE
        popen = self._popen = subprocess.Popen(
            arguments, cwd=folder, env=env, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, process_group=0
        )
        self._loop = asyncio.get_running_loop()
        self._pipes: list[asyncio.BaseTransport | IO[bytes] | None] = [popen.stdin, popen.stdout, popen.stderr]
        try:
            self._exited = self._watch()
        except OSError:
            with popen:
                popen.kill()
            raise

    async def _connect(self) -> None:
        """Connect the pipes to the event loop."""
        popen, loop = self._popen, self._loop
        # A protocol for reading also implements the flow control that a writer needs.
        sending = asyncio.StreamReaderProtocol(asyncio.StreamReader())
        to_program, _ = await loop.connect_write_pipe(lambda: sending, popen.stdin)
        self.stdin = asyncio.StreamWriter(to_program, sending, None, loop)
        self.stdout, self.stderr = asyncio.StreamReader(), asyncio.StreamReader()
        out, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self.stdout), popen.stdout)
        err, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self.stderr), popen.stderr)
        self._pipes = [to_program, out, err]

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        return self._popen.returncode

    async def wait(self) -> int:
        return await asyncio.shield(self._exited)

    async def kill(self) -> None:
        """Kill the program and the processes in its group, and close the pipes."""
        try:
            if self.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.pid, signal.SIGKILL)
                await self.wait()
        finally:
            for each in self._pipes:
                if each is not None:
                    each.close()

    def _watch(self) -> "asyncio.Future[int]":
        """Wait for the exit without a thread, where the system allows it."""
        if not hasattr(os, "pidfd_open"):
            return self._loop.run_in_executor(None, self._popen.wait)
        exited: asyncio.Future[int] = self._loop.create_future()
        descriptor = os.pidfd_open(self._popen.pid)

        def collect() -> None:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)
            exited.set_result(self._popen.wait())

        self._loop.add_reader(descriptor, collect)
        return exited
