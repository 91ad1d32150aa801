"""Writes that nobody waits for, such as "last used": made beside the answer, and made again at the next occasion."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from hubgate.server.storage.database import Database, Unit


@dataclass(frozen=True)
class Aside:
    db: Database
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def write(self, unit: Unit[None]) -> None:
        self.do(self.db.write(unit))

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        """What takes more than one unit."""
        task = asyncio.create_task(work)
        # The loop keeps no task alive by itself.
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # Looked at, so that a database that is away for a moment fills no log.
            task.exception()
