"""One sandbox: starts it, reads its output, and ends it."""

import asyncio
import contextlib
import json
import logging
import os
import sys
from asyncio.subprocess import DEVNULL, STDOUT, Process
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hubgate.server.spaces.bubblewrap import command, launch
from hubgate.server.spaces.bubblewrap.cgroups import Group
from hubgate.server.spaces.bubblewrap.command import Bind, Folder, sandbox_command
from hubgate.server.spaces.bubblewrap.output import OutputPipe, OutputReader
from hubgate.server.spaces.bubblewrap.pythons import Python
from hubgate.server.spaces.bubblewrap.seccomp import seccomp_filter
from hubgate.server.spaces.runner import MIB, Exit, Limits, Log

log = logging.getLogger("hubgate.spaces")

OPEN_FILES = 1024
# The file systems of a sandbox are full before a file reaches this limit.
SPARE_FILE_BYTES = 64 * MIB
WATCH_SECONDS = 1.0
OUTPUT_SECONDS = 5.0


@dataclass(frozen=True)
class Contents:
    """What is in a sandbox, and what its first process gets."""

    python: Python
    folders: Sequence[Folder]
    binds: Sequence[Bind]
    # For `inside.py`.
    spec: dict[str, Any]
    # Passed to it, in this order.
    descriptors: Sequence[int]


class Sandbox:
    """A started sandbox."""

    def __init__(self, process: Process, pipe: OutputPipe, group: Group, limits: Limits, log: Log) -> None:
        self._process, self._pipe, self._group, self._limits, self._log = process, pipe, group, limits, log
        self._reader = OutputReader(pipe, log)
        self._output = asyncio.create_task(self._reader.run())
        self._watch = asyncio.create_task(self._watch_limits())
        self._ended = asyncio.create_task(self._end())

    @property
    def group(self) -> Group:
        return self._group

    async def wait(self) -> Exit:
        return await asyncio.shield(self._ended)

    async def kill(self) -> Exit:
        """End everything in the sandbox at once."""
        self.kill_soon()
        return await self.wait()

    def kill_soon(self) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def _end(self) -> Exit:
        status = await self._process.wait()
        self._watch.cancel()
        killed, refused = self._group.memory_kills(), self._group.refused_forks()
        most = self._group.most_memory()
        try:
            # If bubblewrap was killed while it started, its children survive it. Otherwise the group is empty.
            await self._group.end()
        except TimeoutError:
            # A process that hangs in the kernel. The sweep of a later process removes the group.
            log.warning("a process of the control group %s does not end", self._group.paths[0])
        self._reader.finish()
        # The output may still be open: the app can send it through a socket, where it stays until it is received.
        await asyncio.wait([self._output], timeout=OUTPUT_SECONDS)
        self._output.cancel()
        await asyncio.gather(self._output, return_exceptions=True)
        self._pipe.close()
        return Exit(self._reason(status, killed, refused, most), status)

    def _reason(self, status: int, killed: int, refused: int, most_memory: int) -> str:
        if killed and 0 < most_memory < self._limits.memory - MIB:
            return "All Spaces of this machine together used up their memory, and it was ended."
        if killed:
            return f"It used more than its {self._limits.memory // MIB:,} MiB of memory and was ended."
        if status and refused:
            return f"It reached its limit of {self._limits.processes} processes and ended with exit status {status}."
        if status < 0 or status > 128:
            return f"It was ended by signal {-status if status < 0 else status - 128}."
        return f"It ended with exit status {status}."

    async def _watch_limits(self) -> None:
        said_processes = said_memory = False
        while not (said_processes and said_memory):
            await asyncio.sleep(WATCH_SECONDS)
            if not said_processes and self._group.refused_forks():
                said_processes = True
                self._log(f"hubgate: the limit of {self._limits.processes} processes is reached")
            if not said_memory and self._group.memory_kills():
                said_memory = True
                self._log(f"hubgate: a process was ended, the limit is {self._limits.memory // MIB:,} MiB of memory")


async def open_sandbox(
    bubblewrap: str, contents: Contents, group: Group, user: int | None, limits: Limits, log: Log
) -> Sandbox:
    """Start a sandbox in a new group. `user` is the id to run as; None to run as the hub's user."""
    with contextlib.ExitStack() as stack:

        def document(data: bytes) -> int:
            descriptor = os.memfd_create("hubgate", os.MFD_CLOEXEC)
            stack.callback(os.close, descriptor)
            os.write(descriptor, data)
            os.lseek(descriptor, 0, os.SEEK_SET)
            return descriptor

        spec_fd = document(json.dumps(contents.spec).encode())
        filter_fd = document(seccomp_filter())
        passwd, groups, hosts = (document(text.encode()) for text in (command.PASSWD, command.GROUP, command.HOSTS))
        built = sandbox_command(
            bubblewrap,
            contents.python,
            is_staged=user is not None,
            folders=contents.folders,
            binds=contents.binds,
            filter_fd=filter_fd,
            etc_fds=(passwd, groups, hosts),
            inside=[str(descriptor) for descriptor in (spec_fd, *contents.descriptors)],
        )
        pipe = OutputPipe()
        stack.callback(os.close, pipe.writing)
        try:
            group.create()
            group.limit(limits)
            launch_fd = document(
                json.dumps(
                    {
                        "groups": group.procs_files,
                        "binds": built.binds,
                        "user": user,
                        "files": OPEN_FILES,
                        "file_bytes": limits.disk + SPARE_FILE_BYTES,
                        "parent": os.getpid(),
                        "command": [built.bubblewrap, *built.arguments],
                    }
                ).encode()
            )
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(Path(launch.__file__)), str(launch_fd)),
                stdin=DEVNULL,
                stdout=pipe.writing,
                stderr=STDOUT,
                env={},
                pass_fds=(launch_fd, spec_fd, filter_fd, passwd, groups, hosts, *contents.descriptors),
                start_new_session=True,
            )
        except BaseException:
            pipe.close()
            await group.end()
            raise
    return Sandbox(process, pipe, group, limits, log)
