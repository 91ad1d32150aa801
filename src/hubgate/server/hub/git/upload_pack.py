"""Clones and fetches, answered by the git program from objects and from refs copied from the database."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from time import monotonic

from hubgate.server.errors import BadRequest, Unavailable
from hubgate.server.hub.git import program
from hubgate.server.hub.git.process import Process
from hubgate.server.jobs.caller import while_client_waits

log = logging.getLogger("hubgate.git")

# A working program sends a keep-alive every five seconds; a program silent for this long hangs.
SILENCE_SECONDS = 5 * 60
# The largest repos take hours on a slow connection.
RESPONSE_SECONDS = 24 * 3600
_CHUNK = 64 * 1024
# Bounds memory for any size of repo: large files are streamed without delta compression, and packs are mapped in small
# windows.
_MEMORY = (
    *("-c", "core.bigFileThreshold=16m", "-c", "pack.windowMemory=64m", "-c", "core.deltaBaseCacheLimit=32m"),
    *("-c", "core.packedGitWindowSize=16m", "-c", "core.packedGitLimit=64m"),
)
# In this version the advertisement has no refs, so it is the same for every repo.
VERSION_2 = "version=2"
_known_advertisements: dict[str, bytes] = {}
# The Git-Protocol header, such as version=2; no other client input reaches the program's environment.
_PROTOCOL = re.compile(r"[a-z0-9.:=-]{1,60}\Z")


def known_advertisement(protocol: str) -> bytes | None:
    """The first response of a fetch, if it is known without a repo."""
    return _known_advertisements.get(protocol)


async def advertisement(folder: Path, protocol: str) -> bytes:
    """The first response of a fetch: the capabilities in protocol version 2, every ref in older versions."""
    process = await _start(["upload-pack", "--strict", "--stateless-rpc", "--advertise-refs"], folder, protocol)
    try:
        out, err = await while_client_waits(program.communicate(process), SILENCE_SECONDS)
    finally:
        await process.kill()
    if process.returncode:
        raise program.failure("upload-pack", process.returncode, err.decode(errors="replace"), folder)
    if protocol == VERSION_2:
        _known_advertisements[protocol] = out
    return out


async def answer(folder: Path, protocol: str, request: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Stream the response while the request is still being read. Closing the generator kills the program."""
    process = await _start(["upload-pack", "--strict", "--stateless-rpc"], folder, protocol)
    feed_task = asyncio.create_task(program.feed(process, request))
    stderr_task = asyncio.create_task(program.read_stderr(process))
    has_output = False
    try:
        deadline = monotonic() + RESPONSE_SECONDS
        while part := await _read(process):
            if monotonic() > deadline:
                raise Unavailable("The fetch takes too long. Fetch less at once, such as with --depth.")
            has_output = True
            yield part
        if feed_task.done():
            await feed_task
        stderr, status = await stderr_task, await process.wait()
        if status:
            log.warning("upload-pack exited with status %d: %s", status, stderr.strip()[:500])
            if not has_output:
                raise BadRequest("git does not understand this request.")
    finally:
        await process.kill()
        for task in (feed_task, stderr_task):
            task.cancel()
        await asyncio.gather(feed_task, stderr_task, return_exceptions=True)


async def _read(process: Process) -> bytes:
    try:
        async with asyncio.timeout(SILENCE_SECONDS):
            return await process.stdout.read(_CHUNK)
    except TimeoutError:
        raise Unavailable("git does not respond. Try again.") from None


async def _start(command: list[str], folder: Path, protocol: str) -> Process:
    env = {"GIT_PROTOCOL": protocol} if _PROTOCOL.match(protocol) else {}
    process = await program.start([*_MEMORY, *command, str(folder)], folder, env)
    # A clone of a large repo uses a processor for minutes, and any user may start sixteen.
    program.lower_priority(process)
    return process
