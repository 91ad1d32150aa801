"""Many collections with many items, written to the database directly: over HTTP they would take minutes."""

from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User
from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import Params

_COLLECTION = """
    INSERT INTO collections (id, owner_kind, owner_id, title, title_key, description, search_text, theme, private,
        position, created_at, updated_at)
    VALUES (:id, 'user', :owner_id, :title, :title, '', :title, 'blue', 0, :position, 1, :position)
"""
# The items are the first collections of the same owner.
_ITEMS = """
    INSERT INTO collection_items (id, collection_id, linked_id, note, position)
    SELECT c.id || l.id, c.id, l.id, 'A note', l.position FROM collections c
    JOIN collections l ON l.owner_id = c.owner_id AND l.position < :items
    WHERE c.owner_id = :owner_id AND c.position < :filled
"""


def fill_collections(hub: RunningHub, owner: User, collections: int, items: int, filled: int) -> list[str]:
    """Give a user, who has none, this many collections; their ids, in order. The first `filled` have items."""
    ids = [f"{number:024x}" for number in range(collections)]

    async def unit(tx: Tx) -> None:
        rows: list[Params] = [
            {"id": each, "owner_id": owner.id, "title": f"number {position}", "position": position}
            for position, each in enumerate(ids)
        ]
        await tx.exec_many(_COLLECTION, rows)
        await tx.exec(_ITEMS, {"owner_id": owner.id, "items": items, "filled": filled})

    async def work(opened: Hub) -> None:
        await opened.db.write_long(unit)

    hub.call(work)
    return ids
