"""Git programs: one that is ended early leaves nobody waiting, and every way of watching one works."""

import asyncio
import errno
import gc
import os
import signal
from collections.abc import AsyncIterator, Callable
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
    await asyncio.wait_for(process.kill(), 60)
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
        version = await asyncio.to_thread(lambda: uvloop.run(program.run(["version"], tmp_path, seconds=60)))
        assert version.startswith(b"git version")


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
async def test_cancelled_start_leaves_nothing_running(tmp_path: Path, run: Callable[..., None]) -> None:
    """Wherever it is cancelled. A program left running, or its pipes, would be reported as a warning."""

    async def cancel_after(steps: int) -> None:
        starting = asyncio.create_task(program.run(["-c", "alias.flood=!yes", "flood"], tmp_path, seconds=60))
        for _ in range(steps):
            await asyncio.sleep(0)
        starting.cancel()
        assert (await asyncio.gather(starting, return_exceptions=True))[0].__class__ is asyncio.CancelledError

    for steps in range(1, 12):
        await asyncio.to_thread(lambda: run(cancel_after(steps)))
    gc.collect()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
async def test_input_that_arrives_slowly_after_the_end_is_ignored(tmp_path: Path, run: Callable[..., int]) -> None:
    """Such as the rest of a pack that git has rejected."""

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 1_000
            await asyncio.sleep(0.005)

    async def feed() -> int:
        process = await program.start(["version"], tmp_path)
        try:
            await asyncio.gather(program.feed(process, parts()), process.stdout.read())
            return await process.wait()
        finally:
            await process.kill()

    assert await asyncio.to_thread(lambda: run(feed())) == 0


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
async def test_input_may_end_before_it_is_all_sent(tmp_path: Path, run: Callable[..., int]) -> None:
    async def feed() -> int:
        process = await program.start(["-c", "alias.read=!cat >/dev/null", "read"], tmp_path)

        async def parts() -> AsyncIterator[bytes]:
            while not process.stdin.transport.get_write_buffer_size():
                yield b"x" * 1_000

        try:
            os.killpg(process.pid, signal.SIGSTOP)
            await program.feed(process, parts())
            os.killpg(process.pid, signal.SIGCONT)
            return await process.wait()
        finally:
            await process.kill()

    assert await asyncio.to_thread(lambda: run(feed())) == 0


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
async def test_program_is_watched_without_pidfd(
    tmp_path: Path, run: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On macOS, on old Linux, and in sandboxes. More programs than the event loop has threads of its own."""

    def refused(_: int) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    async def many() -> None:
        waiting = [await program.start(["-c", "alias.wait=!cat", "wait"], tmp_path) for _ in range(40)]
        try:
            assert (await program.run(["version"], tmp_path, seconds=60)).startswith(b"git version")
            for process in waiting:
                process.stdin.close()
            assert [await process.wait() for process in waiting] == [0] * 40
        finally:
            for process in waiting:
                await process.kill()

    monkeypatch.setattr(os, "pidfd_open", refused)
    await asyncio.to_thread(lambda: run(many()))
