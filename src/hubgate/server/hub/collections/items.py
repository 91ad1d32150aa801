"""Adding, changing, moving and removing the items of a collection."""

from hubgate.server.access.identity import Identity
from hubgate.server.access.visibility import visible_collections, visible_repos
from hubgate.server.errors import Conflict, FieldErrors, NotFound, Unprocessable
from hubgate.server.hub.collections import store
from hubgate.server.hub.collections.model import COLLECTION_GONE, MAX_ITEMS, Collection, check_note
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos.model import Repo
from hubgate.server.ids import new_id
from hubgate.server.storage.database import Tx

Target = Repo | Collection

ITEM_GONE = "This item is not in the collection."


async def add(repos: Repos, collection: Collection, target: Target, note: str) -> None:
    """Append a repo or a collection that the caller may see. Others see the item only if they may see its target."""
    now, text = repos.clock(), check_note(note)
    repo_id, linked_id = (target.id, None) if isinstance(target, Repo) else (None, target.id)

    async def unit(tx: Tx) -> None:
        if not await store.target_exists(tx, repo_id, linked_id):
            raise NotFound("The item was deleted by another request.")
        await _lock(tx, collection, now)
        if len(await store.item_ids(tx, collection.id)) >= MAX_ITEMS:
            raise FieldErrors({"id": f"The collection has {MAX_ITEMS:,} items, the most that are allowed."})
        values = {
            "id": new_id(now),
            "collection_id": collection.id,
            "repo_id": repo_id,
            "linked_id": linked_id,
            "note": text,
            "position": await store.last_item_position(tx, collection.id) + 1,
        }
        if not await store.add_item(tx, values):
            raise Conflict("This item is already in the collection.")

    await repos.db.write(unit)


async def update(
    repos: Repos, identity: Identity, collection: Collection, item_id: str, note: str | None, place: int | None
) -> None:
    """Change the note or the place of an item. `place` is its index among the items that the caller may see."""
    now, text = repos.clock(), None if note is None else check_note(note)
    if place is not None and place < 0:
        raise Unprocessable("position must be 0 or more.")

    async def unit(tx: Tx) -> None:
        seen = await _lock_with_items(tx, identity, collection, item_id, now)
        if text is not None:
            await store.set_note(tx, item_id, text)
        if place is not None:
            others = [each for each in await store.item_ids(tx, collection.id) if each != item_id]
            seen.remove(item_id)
            # Items that the caller cannot see stay where they are, behind the item that precedes them.
            at = others.index(seen[place]) if place < len(seen) else len(others)
            await store.set_item_positions(tx, [*others[:at], item_id, *others[at:]])

    await repos.db.write(unit)


async def remove(repos: Repos, identity: Identity, collection: Collection, item_id: str) -> None:
    now = repos.clock()

    async def unit(tx: Tx) -> None:
        await _lock_with_items(tx, identity, collection, item_id, now)
        await store.remove_item(tx, item_id)

    await repos.db.write(unit)


async def _lock_with_items(tx: Tx, identity: Identity, collection: Collection, item_id: str, now: int) -> list[str]:
    """Lock the collection and return the ids of the items that the caller may see, which include `item_id`."""
    await _lock(tx, collection, now)
    found = await store.items(tx, collection.id, visible_repos(identity), visible_collections(identity), MAX_ITEMS)
    ids = [item.id for item in found]
    if item_id not in ids:
        raise NotFound(ITEM_GONE)
    return ids


async def _lock(tx: Tx, collection: Collection, now: int) -> None:
    if not await store.lock(tx, collection.id, now):
        raise NotFound(COLLECTION_GONE)
