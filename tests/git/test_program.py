"""A git program that is ended early leaves nobody waiting."""

import asyncio
from pathlib import Path

from hubgate.server.hub.git import program


async def test_program_with_unread_output_can_be_ended(tmp_path: Path) -> None:
    """Its full pipe is not read, so its end would otherwise never be noticed."""
    process = await program.start(["-c", "alias.flood=!yes", "flood"], tmp_path)
    assert process.stdout is not None
    await process.stdout.read(1)
    while not process.stdout._paused:  # type: ignore[attr-defined]
        await asyncio.sleep(0.01)
    await asyncio.wait_for(program.kill(process), 10)
    assert process.returncode is not None
    assert process.returncode < 0
