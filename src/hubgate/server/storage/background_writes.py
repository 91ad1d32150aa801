"""Background writes that no response depends on, such as "last used". A failed write is not retried: the next request
writes again.
"""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any

from msgspec import Struct, field

from hubgate.server.storage.database import Database, Unit


class BackgroundWrites(Struct, frozen=True):
    db: Database
    # The event loop has only weak references to tasks.
    _tasks: dict[object, asyncio.Task[None]] = field(default_factory=dict)

    def start(self, subject: str | bytes, unit: Unit[None]) -> None:
        """Start a write unless one for the same subject is running.

        Until that write commits, every request sees the old row and would queue another write, until no database
        connection is left for responses.
        """
        if subject not in self._tasks:
            self._add_task(subject, self.db.write(unit))

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start background work that needs more than one unit, or that the caller may briefly wait for."""
        return self._add_task(object(), work)

    def _add_task(self, subject: object, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._tasks[subject] = asyncio.create_task(work)
        task.add_done_callback(partial(self._ended, subject))
        return task

    def _ended(self, subject: object, task: asyncio.Task[None]) -> None:
        del self._tasks[subject]
        if not task.cancelled():
            # Retrieve the exception, so that a short database outage does not fill the log.
            task.exception()
