"""Deletion of unused content that cannot race with an upload of the same content.

1. The sweep marks content that nothing refers to (`sweep.py`).
2. A day later, if nothing refers to it and it is still marked, its deletion begins. Then it is deleted from the store,
   and the mark is removed.

An upload calls `reserve` before it stores content, which removes the mark: a deletion then begins a day later at the
earliest, and finds what refers to the content by then. If the deletion has begun, the upload is rejected for a moment.
So neither the time of the store nor conditional requests matter, which stores implement differently.
"""

from hubgate.server.clock import DAY
from hubgate.server.errors import Unavailable
from hubgate.server.objects import store
from hubgate.server.storage.database import Database

# The longest time between storing content and referring to it.
MAX_LINKING_TIME = DAY


class BeingDeleted(Unavailable):
    def __init__(self) -> None:
        super().__init__("An older copy of this file is being deleted. Try again in a moment.", retry_after=2)


async def reserve(db: Database, key: str) -> None:
    """Protect content from deletion until something refers to it, for a day. Call this before `Objects.put`."""
    if await store.state(db, key) is None:
        return
    if not await db.write(lambda tx: store.unmark(tx, key)):
        raise BeingDeleted
