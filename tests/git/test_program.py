"""A git program that is ended early leaves nobody waiting."""

import asyncio
import gc
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from hubgate.server.hub.git import program


async def test_program_with_unread_output_can_be_ended(tmp_path: Path) -> None:
    """Its full pipe is not read, so its end would otherwise never be noticed."""
    process = await program.start(["-c", "alias.flood=!yes", "flood"], tmp_path)
    await process.stdout.read(1)
    while not process.stdout._paused:  # type: ignore[attr-defined]
        await asyncio.sleep(0.01)
    await asyncio.wait_for(process.kill(), 10)
    assert process.returncode is not None
    assert process.returncode < 0


async def test_program_starts_on_the_loop_of_the_background_process(tmp_path: Path) -> None:
    """In a separate process group, which is killed with all programs that git has started."""

    async def start() -> int:
        process = await program.start(["-c", "alias.flood=!yes", "flood"], tmp_path)
        group = os.getpgid(process.pid) if process.returncode is None else 0
        await process.kill()
        return group - process.pid

    assert await asyncio.to_thread(lambda: uvloop.run(start())) == 0
    # Often git has ended before its input is written.
    for _ in range(20):
        version = await asyncio.to_thread(lambda: uvloop.run(program.run(["version"], tmp_path, seconds=10)))
        assert version.startswith(b"git version")


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
async def test_cancelled_start_leaves_nothing_running(tmp_path: Path, run: Callable[..., None]) -> None:
    """Wherever it is cancelled. A program left running, or its pipes, would be reported as a warning."""

    async def cancel_after(steps: int) -> None:
        starting = asyncio.create_task(program.run(["-c", "alias.flood=!yes", "flood"], tmp_path, seconds=20))
        for _ in range(steps):
            await asyncio.sleep(0)
        starting.cancel()
        assert (await asyncio.gather(starting, return_exceptions=True))[0].__class__ is asyncio.CancelledError

    for steps in range(1, 12):
        await asyncio.to_thread(lambda: run(cancel_after(steps)))
    gc.collect()
