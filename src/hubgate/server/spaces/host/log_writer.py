"""Stores the lines of a Space's logs, many in one transaction."""

import asyncio
import logging

from hubgate.server.clock import Clock
from hubgate.server.errors import HubError
from hubgate.server.spaces import logs_store
from hubgate.server.spaces.logs_store import BUILD, MAX_LINES, RUN
from hubgate.server.spaces.runner import Log
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.signals import Signal

log = logging.getLogger("hubgate.spaces")

FLUSH_SECONDS = 0.5


class LogWriter:
    def __init__(self, db: Database, clock: Clock, repo_id: str) -> None:
        self._db, self._clock, self._repo_id = db, clock, repo_id
        self._lines: dict[str, list[tuple[int, str]]] = {BUILD: [], RUN: []}
        self._task: asyncio.Task[None] | None = None

    def to(self, kind: str) -> Log:
        def write(line: str) -> None:
            lines = self._lines[kind]
            lines.append((self._clock(), line))
            # Only the newest are stored.
            del lines[:-MAX_LINES]
            if self._task is None:
                self._task = asyncio.create_task(self._flush_later())

        return write

    async def clear(self, kind: str) -> None:
        self._lines[kind].clear()
        await self._db.write(lambda tx: logs_store.clear(tx, self._repo_id, kind))

    async def flush(self) -> None:
        for kind, lines in self._lines.items():
            if lines:
                taken = list(lines)
                lines.clear()
                await self._append(kind, taken)

    async def _append(self, kind: str, lines: list[tuple[int, str]]) -> None:
        async def unit(tx: Tx) -> None:
            await logs_store.append(tx, self._repo_id, kind, lines)
            tx.signal(Signal.SPACE_LOGS)

        await self._db.write(unit)

    async def _flush_later(self) -> None:
        await asyncio.sleep(FLUSH_SECONDS)
        self._task = None
        try:
            await self.flush()
        except HubError:
            # Lines of an app are not worth stopping it.
            log.exception("lines of a log were lost")
