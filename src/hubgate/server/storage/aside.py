"""Writes that nobody waits for, such as "last used": made beside the answer, and made again at the next occasion."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hubgate.server.storage.database import Database, Unit


@dataclass(frozen=True)
class Aside:
    db: Database
    # The loop keeps no task alive by itself.
    _tasks: dict[object, asyncio.Task[None]] = field(default_factory=dict)

    def note(self, subject: str | bytes, unit: Unit[None]) -> None:
        """One at a time for each subject: until it is saved, every request with it finds the old row and would queue
        another, until no connection is left for an answer."""
        if subject not in self._tasks:
            self._start(subject, self.db.write(unit))

    def do(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """What takes more than one unit, or may be waited for a moment."""
        return self._start(object(), work)

    def _start(self, subject: object, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._tasks[subject] = asyncio.create_task(work)
        task.add_done_callback(partial(self._ended, subject))
        return task

    def _ended(self, subject: object, task: asyncio.Task[None]) -> None:
        del self._tasks[subject]
        if not task.cancelled():
            # Looked at, so that a database that is away for a moment fills no log.
            task.exception()
