"""Signals between processes: after a commit, a process notifies the others that there is work.

Signals may be lost, so listeners also poll (`Database.poll_seconds`). With SQLite every listening process has a FIFO
next to the database, with PostgreSQL a connection that listens to a channel (`postgres_signals.py`).
"""

import asyncio
import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Collection
from enum import Enum
from pathlib import Path
from typing import Protocol


class Signal(Enum):
    """The work that a signal announces: new events, deliveries to read, shards to claim, entries of live streams,
    requests to receivers behind tunnels, or their answers; changes of Spaces and requests to them, answers of Spaces,
    lines of their logs. The values are sent.
    """

    EVENTS = "e"
    DELIVERIES = "d"
    SHARDS = "s"
    TUNNEL_REQUESTS = "t"
    TUNNEL_ANSWERS = "a"
    STREAMS = "l"
    SPACES = "p"
    SPACE_ANSWERS = "q"
    SPACE_LOGS = "o"


OnSignal = Callable[[Signal], None]

POLL_SECONDS = 1.0


class Listening(Protocol):
    async def close(self) -> None: ...


class Fifos:
    """The FIFOs of the processes that use one SQLite file."""

    def __init__(self, database: Path) -> None:
        self._folder = database.with_name(database.name + "-signals")

    def send(self, signals: Collection[Signal]) -> None:
        """Send to all listening processes. Never blocks: if a FIFO is full, its process has signals to read anyway."""
        data = "".join(signal.value for signal in signals).encode()
        with contextlib.suppress(OSError):
            for path in self._folder.iterdir():
                if not path.name.startswith("."):
                    self._send_to(path, data)

    def _send_to(self, path: Path, data: bytes) -> None:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno == errno.ENXIO:
                # Its process has died.
                path.unlink(missing_ok=True)
            return
        try:
            with contextlib.suppress(OSError):
                os.write(descriptor, data)
        finally:
            os.close(descriptor)

    def listen(self, on_signal: OnSignal) -> "ListeningFifo":
        self._folder.mkdir(mode=0o700, exist_ok=True)
        return ListeningFifo(self._folder / secrets.token_hex(8), on_signal)


class ListeningFifo:
    def __init__(self, path: Path, on_signal: OnSignal) -> None:
        self._path, self._on_signal = path, on_signal
        # Under a hidden name until it is open: a sender removes a FIFO that no process reads.
        hidden = path.with_name("." + path.name)
        os.mkfifo(hidden, 0o600)
        # Also open for writing: otherwise the FIFO would be at its end when the last writer closes it.
        self._descriptor = os.open(hidden, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        hidden.rename(path)
        asyncio.get_running_loop().add_reader(self._descriptor, self._read)

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for value in set(os.read(self._descriptor, 4096).decode("ascii", "ignore")):
                with contextlib.suppress(ValueError):
                    self._on_signal(Signal(value))

    async def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


async def wait_for(event: asyncio.Event, seconds: float | None) -> None:
    """Wait until an event is set or the time has passed, and clear the event."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    event.clear()
