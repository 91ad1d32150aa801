"""Collections and lists of collections, as the caller sees them."""

from collections.abc import AsyncGenerator, Sequence
from functools import partial

from hubgate.server.access import resource
from hubgate.server.access.identity import Identity
from hubgate.server.access.visibility import visible_collections, visible_repos
from hubgate.server.hub.collections import store
from hubgate.server.hub.collections.model import (
    MAX_COLLECTIONS,
    MAX_ITEMS,
    Collection,
    CollectionItems,
    id_in_slug,
)
from hubgate.server.hub.collections.store import CollectionFilter
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.storage.database import Database, Tx

CURSOR = (int, str)
# Lists show the first items of each collection. Existing clients expect at most four.
ITEMS_IN_LIST = 4
MAX_PAGE = 100


async def find(repos: Repos, namespace: str, segment: str) -> Collection | resource.Collection:
    """The collection of this namespace with the id at the end of `segment`; a placeholder that policy rejects if none
    exists (`policy.refuse_missing`).
    """
    owner = await repo_store.owner_named(repos.db, namespace)
    if owner is None:
        return resource.Collection.missing()
    collection_id = id_in_slug(segment)
    found = await store.by_id(repos.db, collection_id) if collection_id else None
    return found if found and found.owner_id == owner.id else resource.Collection.missing(owner.namespace)


async def with_items(repos: Repos, identity: Identity, collection: Collection) -> CollectionItems:
    """The collection with the items that the caller may see."""
    seen = visible_collections(identity)

    async def read(tx: Tx) -> CollectionItems:
        items = await store.items(tx, collection.id, visible_repos(identity), seen, MAX_ITEMS)
        return CollectionItems(collection, items, await store.place_of(tx, collection, seen))

    return await repos.db.read_long(read)


async def list_collections(
    repos: Repos, identity: Identity, collection_filter: CollectionFilter, page_request: PageRequest
) -> Page[CollectionItems]:
    """A page of the collections that the caller may see, most recently changed first, each with its first items."""
    limited = PageRequest(min(page_request.limit, MAX_PAGE), page_request.after)
    after = (int(limited.after[0]), str(limited.after[1])) if limited.after else None

    async def read(tx: Tx) -> list[CollectionItems]:
        seen = visible_collections(identity)
        found = await store.page(tx, collection_filter, seen, after, limited.fetch_limit)
        return await _with_first_items(tx, identity, found)

    rows = await repos.db.read_long(read)
    return page_of(rows, limited, lambda row: (row.collection.updated_at, row.collection.id))


async def of_owner(repos: Repos, identity: Identity, owner_id: str, limit: int) -> list[CollectionItems]:
    """The first collections of an owner, in the owner's order, each with its first items."""

    async def read(tx: Tx) -> list[CollectionItems]:
        found = await store.of_owner(tx, owner_id, visible_collections(identity), limit)
        return await _with_first_items(tx, identity, found)

    return await repos.db.read_long(read)


async def export_of(db: Database, identity: Identity, owner_id: str) -> AsyncGenerator[list[CollectionItems], None]:
    """All collections of an owner with all items that the caller may see, one at a time."""
    seen = visible_collections(identity)
    for each in await db.read_long(lambda tx: store.of_owner(tx, owner_id, seen, MAX_COLLECTIONS)):
        yield [await db.read_long(partial(_with_all_items, identity=identity, collection=each))]


async def _with_all_items(tx: Tx, identity: Identity, collection: Collection) -> CollectionItems:
    seen_repos, seen = visible_repos(identity), visible_collections(identity)
    return CollectionItems(collection, await store.items(tx, collection.id, seen_repos, seen, MAX_ITEMS))


async def _with_first_items(tx: Tx, identity: Identity, found: Sequence[Collection]) -> list[CollectionItems]:
    """Each collection with its first items. One query each, which stops at the limit, so that long collections cost no
    more than short ones.
    """
    seen_repos, seen = visible_repos(identity), visible_collections(identity)
    return [CollectionItems(each, await store.items(tx, each.id, seen_repos, seen, ITEMS_IN_LIST)) for each in found]
