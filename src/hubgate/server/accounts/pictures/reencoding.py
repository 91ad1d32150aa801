"""Runs the limited process that draws an uploaded picture anew (`reencode.py`)."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from hubgate.server.accounts.pictures.model import FIELD, MAX_BYTES, SIZES, Picture
from hubgate.server.errors import FieldErrors

# Wall-clock time; the process also limits its CPU time.
LONGEST_SECONDS = 20.0
_NOT_READABLE = (
    "The hub cannot read this picture. Use a PNG, JPEG, WebP or GIF file of up to 25 megapixels, without other data "
    "after the picture."
)
_PROGRAM = Path(__file__).with_name("reencode.py")
# As `reencode.py` exits for a file that is not a picture. A decoder that uses too much time is killed by SIGXCPU.
_REJECTED = (1, -signal.SIGXCPU, -signal.SIGKILL, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT)


async def reencode(picture_id: str, data: bytes) -> Picture:
    """Draw the picture anew; FieldErrors if the hub does not accept it."""
    if not data:
        raise FieldErrors({FIELD: "Choose a picture."})
    if len(data) > MAX_BYTES:
        raise FieldErrors({FIELD: f"A picture may have at most {MAX_BYTES:,} bytes."})
    status, output, errors = await _run(data)
    if status in _REJECTED:
        raise FieldErrors({FIELD: _NOT_READABLE})
    if status != 0:
        raise RuntimeError(f"drawing a picture failed with status {status}: {errors.decode(errors='replace')[-500:]}")
    small, large = _split(output)
    return Picture(picture_id, small, large)


async def _run(data: bytes) -> tuple[int, bytes, bytes]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(_PROGRAM),
        *map(str, SIZES),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={},
        cwd="/",
        # As for git (`hub/git/program.py`).
        process_group=0,
    )
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            output, errors = await process.communicate(data)
    except TimeoutError:
        return -signal.SIGKILL, b"", b""
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return process.returncode or 0, output, errors


def _split(output: bytes) -> list[bytes]:
    parts, at = [], 0
    while at < len(output):
        end = at + 4 + int.from_bytes(output[at : at + 4], "big")
        parts.append(output[at + 4 : end])
        at = end
    return parts
