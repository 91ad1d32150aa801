"""Signals with PostgreSQL: one NOTIFY for all commits since the last one, and a connection that listens.

NOTIFY inside of transactions would serialize their commits.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

import asyncpg

from hubgate.server.errors import HubError
from hubgate.server.storage.signals import OnSignal, Signal

CHANNEL = "hubgate"
CONNECT_SECONDS = 3.0
RECONNECT_SECONDS = 1.0
CLOSE_SECONDS = 1.0
_NOTIFY = f"SELECT pg_notify('{CHANNEL}', $1)"

Run = Callable[[str, Sequence[Any]], Awaitable[Any]]


class Channel:
    def __init__(self, url: str, run: Run) -> None:
        self._url, self._run = url, run
        self._unsent: set[Signal] = set()
        self._sending: asyncio.Task[None] | None = None

    def send(self, signals: Collection[Signal]) -> None:
        self._unsent.update(signals)
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        try:
            while self._unsent:
                payload = "".join(signal.value for signal in self._unsent)
                self._unsent.clear()
                with contextlib.suppress(HubError):
                    await self._run(_NOTIFY, [payload])
        finally:
            self._sending = None

    async def close(self) -> None:
        """Wait for signals of the last commits: other processes take over the work of this one."""
        if self._sending is not None:
            await asyncio.wait([self._sending], timeout=CLOSE_SECONDS)

    def listen(self, on_signal: OnSignal) -> "ListeningConnection":
        return ListeningConnection(self._url, on_signal)


class ListeningConnection:
    """Listens on a separate connection, and reconnects when it is lost."""

    def __init__(self, url: str, on_signal: OnSignal) -> None:
        self._url, self._on_signal = url, on_signal
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
                await self._listen()
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _listen(self) -> None:
        connection = await asyncpg.connect(self._url, timeout=CONNECT_SECONDS)
        lost = asyncio.Event()
        try:
            connection.add_termination_listener(lambda _: lost.set())
            await connection.add_listener(CHANNEL, self._received)
            # Any of them may have been sent before.
            for signal in Signal:
                self._on_signal(signal)
            await lost.wait()
        finally:
            connection.terminate()

    def _received(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        for value in set(str(payload)):
            with contextlib.suppress(ValueError):
                self._on_signal(Signal(value))

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
