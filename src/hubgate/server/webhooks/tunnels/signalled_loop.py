"""A loop that runs a step after each signal, and regularly while the step has something to wait for."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from hubgate.server.storage.database import Database
from hubgate.server.storage.signals import Signal, wait_for

log = logging.getLogger("hubgate.tunnels")

# Returns whether there is something to wait for.
Step = Callable[[], Awaitable[bool]]


class SignalledLoop:
    """Starts with the first call of `wake`: a process without tunnels listens to nothing."""

    def __init__(self, db: Database, signal: Signal, step: Step) -> None:
        self._db, self._signal, self._step = db, signal, step
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        self._woken.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        listening = await self._db.listen(self._on_signal)
        try:
            while True:
                await wait_for(self._woken, self._db.poll_seconds if await self._step_safely() else None)
        finally:
            await listening.close()

    def _on_signal(self, signal: Signal) -> None:
        if signal is self._signal:
            self._woken.set()

    async def _step_safely(self) -> bool:
        try:
            return await self._step()
        except Exception:
            log.exception("requests through tunnels could not be processed, which will be retried")
            return True
