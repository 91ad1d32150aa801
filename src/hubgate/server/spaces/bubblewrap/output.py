"""Reads the output of a sandbox, at a limited rate: an app that prints a gigabyte waits, and not the hub."""

import asyncio
import contextlib
import os
import re
import time

from hubgate.server.spaces.runner import Log

LONGEST_LINE = 4096
BYTES_PER_SECOND = 16 * 1024
BURST_BYTES = 512 * 1024
# Storing a line costs about as much as storing so many bytes.
LINE_BYTES = 128
CHUNK = 16 * 1024

_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class OutputPipe:
    """A pipe for the output of a sandbox.

    Not a pipe of asyncio's subprocess: that reports the exit of a process only when its output has been read to the
    end, and an app can delay this for hours. And no transport of the event loop: uvloop closes its descriptor twice, as
    `hub/git/process.py` explains.
    """

    def __init__(self) -> None:
        # The sandbox gets `writing`; the hub closes its own copy.
        self._reading, self.writing = os.pipe()
        os.set_blocking(self._reading, False)

    async def read(self, size: int) -> bytes:
        while True:
            try:
                return os.read(self._reading, size)
            except BlockingIOError:
                await self._until_readable()

    async def _until_readable(self) -> None:
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(self._reading, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._reading)

    def close(self) -> None:
        os.close(self._reading)


class OutputReader:
    def __init__(self, pipe: OutputPipe, log: Log) -> None:
        self._pipe, self._log = pipe, log
        self._rest = b""
        self._budget = float(BURST_BYTES)
        self._at = time.monotonic()
        self._is_slowed = False
        self._is_ended = asyncio.Event()

    def finish(self) -> None:
        """Read what is left at full speed: it is no more than buffers hold."""
        self._is_ended.set()

    async def run(self) -> None:
        """Read until the output ends, which is when everything in the sandbox has ended."""
        while data := await self._pipe.read(CHUNK):
            self._add(data)
            await self._slow_down(len(data) + LINE_BYTES * data.count(b"\n"))
        if self._rest:
            self._write(self._rest)

    def _add(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._write(line)
        while len(self._rest) > LONGEST_LINE:
            self._write(self._rest[:LONGEST_LINE])
            self._rest = self._rest[LONGEST_LINE:]

    def _write(self, line: bytes) -> None:
        text = _COLOURS.sub("", line[:LONGEST_LINE].decode("utf-8", "replace").rstrip("\r"))
        # Characters that databases reject or terminals act on.
        self._log(
            "".join(character if character.isprintable() or character == "\t" else "\ufffd" for character in text)
        )

    async def _slow_down(self, count: int) -> None:
        if self._is_ended.is_set():
            # Others have a turn between two parts.
            await asyncio.sleep(0)
            return
        now = time.monotonic()
        self._budget = min(BURST_BYTES, self._budget + (now - self._at) * BYTES_PER_SECOND) - count
        self._at = now
        if self._budget >= 0:
            return
        if not self._is_slowed:
            self._is_slowed = True
            self._log(f"hubgate: output is slowed down to {BYTES_PER_SECOND // 1024} KiB per second")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(-self._budget / BYTES_PER_SECOND):
                await self._is_ended.wait()
