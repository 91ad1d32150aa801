"""Clones and fetches: the git program answers them, from objects and copied refs that are as new as the database's."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from time import monotonic

from hubgate.server.errors import BadRequest, Unavailable
from hubgate.server.hub.git import program
from hubgate.server.jobs.caller import while_wanted

log = logging.getLogger("hubgate.git")

# While it works it says so every five seconds; silent for this long, it hangs.
LONGEST_SILENCE = 5 * 60
# However slowly its client reads: the largest repos take hours on a slow line.
LONGEST_ANSWER = 24 * 3600
_CHUNK = 64 * 1024
# However large a repo is: files are streamed rather than compared, and of packs only so much is mapped at a time.
_MEMORY = (
    *("-c", "core.bigFileThreshold=16m", "-c", "pack.windowMemory=64m", "-c", "core.deltaBaseCacheLimit=32m"),
    *("-c", "core.packedGitWindowSize=16m", "-c", "core.packedGitLimit=64m"),
)
# What clients ask for with, such as version=2; nothing else of theirs reaches the program's environment.
_PROTOCOL = re.compile(r"[a-z0-9.:=-]{1,60}\Z")


async def advertisement(folder: Path, protocol: str) -> bytes:
    """What a fetch begins with: in version 2 what is spoken here, before that every ref."""
    process = await _started(["upload-pack", "--strict", "--stateless-rpc", "--advertise-refs"], folder, protocol)
    try:
        out, err = await while_wanted(process.communicate(), LONGEST_SILENCE)
    finally:
        await program.end(process)
    if process.returncode:
        raise program.GitFailed("upload-pack", process.returncode, err.decode(errors="replace"))
    return out


async def answer(folder: Path, protocol: str, request: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The answer to one request, made while the request is still being read. Closing this ends the program at once."""
    process = await _started(["upload-pack", "--strict", "--stateless-rpc"], folder, protocol)
    feeding = asyncio.create_task(program.feed(process, request))
    saying = asyncio.create_task(program.complaints(process))
    begun = False
    try:
        until = monotonic() + LONGEST_ANSWER
        while part := await _read(process):
            if monotonic() > until:
                raise Unavailable("The fetch takes too long. Fetch less at once, such as with --depth.")
            begun = True
            yield part
        if feeding.done():
            await feeding
        said, status = await saying, await process.wait()
        if status:
            log.warning("upload-pack ended with %d: %s", status, said.strip()[:500])
            if not begun:
                raise BadRequest("This is no request that git understands.")
    finally:
        await program.end(process)
        for task in (feeding, saying):
            task.cancel()
        await asyncio.gather(feeding, saying, return_exceptions=True)


async def _read(process: asyncio.subprocess.Process) -> bytes:
    if process.stdout is None:
        raise ValueError("started without a pipe")
    try:
        async with asyncio.timeout(LONGEST_SILENCE):
            return await process.stdout.read(_CHUNK)
    except TimeoutError:
        raise Unavailable("git is silent for too long. Try again.") from None


async def _started(command: list[str], folder: Path, protocol: str) -> asyncio.subprocess.Process:
    more = {"GIT_PROTOCOL": protocol} if _PROTOCOL.match(protocol) else {}
    process = await program.start([*_MEMORY, *command, str(folder)], folder, more)
    # A clone of a large repo takes a processor for minutes, and anyone may ask for sixteen.
    program.give_way(process)
    return process
