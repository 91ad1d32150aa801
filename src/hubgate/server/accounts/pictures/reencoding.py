"""Runs the limited process that draws an uploaded picture anew (`reencode.py`)."""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

from hubgate.server.accounts.pictures.model import FIELD, MAX_BYTES, SIZES, Picture
from hubgate.server.errors import FieldErrors

# Wall-clock time; the process also limits its CPU time.
LONGEST_SECONDS = 20.0
_NOT_READABLE = (
    "The hub cannot read this picture. Use a PNG, JPEG, WebP or GIF file of up to 25 megapixels, without other data "
    "after the picture."
)
PROGRAM = Path(__file__).with_name("reencode.py")
# As `reencode.py` exits for a file that is not a picture.
_REJECTED = 3
# Of all sizes together. A decoder that was taken over must not fill the hub's memory.
_MAX_OUTPUT_BYTES = 1_000_000
_CHUNK = 64 * 1024


async def reencode(
    picture_id: str, data: bytes, *, program: Path = PROGRAM, seconds: float = LONGEST_SECONDS
) -> Picture:
    """Draw the picture anew; FieldErrors if the hub does not accept it."""
    if not data:
        raise FieldErrors({FIELD: "Choose a picture."})
    if len(data) > MAX_BYTES:
        raise FieldErrors({FIELD: f"A picture may have at most {MAX_BYTES:,} bytes."})
    status, output, errors = await _run(data, program, seconds)
    # Negative for a decoder that crashed or was killed, such as one that used too much time.
    if status == _REJECTED or status < 0 or len(output) > _MAX_OUTPUT_BYTES:
        raise FieldErrors({FIELD: _NOT_READABLE})
    if status != 0:
        raise RuntimeError(f"drawing a picture failed with status {status}: {errors.decode(errors='replace')[-500:]}")
    small, large = _split(output)
    return Picture(picture_id, small, large)


async def _run(data: bytes, program: Path, seconds: float) -> tuple[int, bytes, bytes]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(program),
        *map(str, SIZES),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env={},
        cwd="/",
        # As for git (`hub/git/program.py`).
        process_group=0,
    )
    try:
        async with asyncio.timeout(seconds):
            _, output, errors = await asyncio.gather(_feed(process, data), _read(process.stdout), _read(process.stderr))
            await process.wait()
    except TimeoutError:
        return -signal.SIGKILL, b"", b""
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            # `wait` does not return before each pipe has been read to its end.
            await asyncio.gather(_read(process.stdout), _read(process.stderr))
            await process.wait()
    return process.returncode or 0, output, errors


async def _feed(process: Process, data: bytes) -> None:
    if process.stdin is None:
        raise ValueError("started without a pipe")
    # The process may fail before it has read everything.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


async def _read(stream: asyncio.StreamReader | None) -> bytes:
    """The output of the process. What follows _MAX_OUTPUT_BYTES is read, but not returned."""
    if stream is None:
        raise ValueError("started without a pipe")
    output = bytearray()
    while part := await stream.read(_CHUNK):
        if len(output) <= _MAX_OUTPUT_BYTES:
            output += part
    return bytes(output)


def _split(output: bytes) -> list[bytes]:
    parts, at = [], 0
    while at < len(output):
        end = at + 4 + int.from_bytes(output[at : at + 4], "big")
        parts.append(output[at + 4 : end])
        at = end
    return parts
