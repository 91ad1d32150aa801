"""A git program that is ended half-way leaves nobody waiting."""

import asyncio
from pathlib import Path

from hubgate.server.hub.git import program


async def test_one_whose_output_nobody_reads_any_more(tmp_path: Path) -> None:
    """Full, its pipe is not read from; then its end would never be seen."""
    process = await program.start(["-c", "alias.flood=!yes", "flood"], tmp_path)
    assert process.stdout is not None
    await process.stdout.read(1)
    while not process.stdout._paused:  # type: ignore[attr-defined]
        await asyncio.sleep(0.01)
    await asyncio.wait_for(program.end(process), 10)
    assert process.returncode is not None
    assert process.returncode < 0
