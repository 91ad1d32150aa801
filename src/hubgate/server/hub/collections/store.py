"""SQL statements for collections and their items."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from hubgate.server.access.visibility import VisibleCollections, VisibleRepos
from hubgate.server.hub.collections.model import Collection, Item
from hubgate.server.hub.listing.store import visible_repos_sql
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.repos.store import OWNERS
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import Params, containing, insert_row


def _columns(table: str, user: str, org: str) -> str:
    """The columns of a collection, in the order of model.Collection. The parameters are table aliases."""
    return f"""{table}.id, {table}.owner_kind, {table}.owner_id, COALESCE({user}.name, {org}.name),
        COALESCE({user}.fullname, {org}.fullname), {table}.title, {table}.description, {table}.theme, {table}.private,
        {table}.position, {table}.created_at, {table}.updated_at"""


def _owners(table: str, user: str, org: str) -> str:
    return f"""LEFT JOIN users {user} ON {table}.owner_kind = 'user' AND {user}.id = {table}.owner_id
        LEFT JOIN organizations {org} ON {table}.owner_kind = 'org' AND {org}.id = {table}.owner_id"""


COLLECTION = _columns("c", "cu", "co")
COLLECTION_OWNERS = _owners("c", "cu", "co")
# In the order of model.Repo, with empty card and tags.
_REPO = """r.id, r.type, r.owner_kind, r.owner_id, COALESCE(u.name, o.name), r.name, r.private, r.gated,
    r.discussions_disabled, r.sdk, r.creator_id, r.creator_client, r.head_sha, '{}', '[]', r.created_at,
    r.updated_at, r.generation, r.last_seq"""
_REPO_COLUMNS = 19


class CollectionFilter(Struct, frozen=True):
    """The filters of a list."""

    # Collections of any of these owners; None for all owners. An empty list matches nothing.
    owners: Sequence[str] | None = None
    # Collections that contain all of these repos and collections, by id.
    items: Sequence[str] = ()
    # Part of the title or the description, case-folded.
    search: str = ""


async def by_id(tx: Tx | Database, collection_id: str) -> Collection | None:
    row = await tx.one(
        f"SELECT {COLLECTION} FROM collections c {COLLECTION_OWNERS} WHERE c.id = :id", {"id": collection_id}
    )
    return Collection(*row) if row else None


async def page(
    tx: Tx,
    collection_filter: CollectionFilter,
    visible: VisibleCollections,
    after: tuple[int, str] | None,
    limit: int,
) -> list[Collection]:
    """Collections that the caller may see, most recently changed first."""
    values: dict[str, str | int] = {"limit": limit}
    conditions = [visible_collections_sql("c", visible, values)]
    if collection_filter.owners is not None:
        conditions.append(f"c.owner_id IN ({_placeholders('of', collection_filter.owners, values)})")
    for number, item in enumerate(collection_filter.items):
        values[f"item{number}"] = item
        conditions.append(
            f"""EXISTS (SELECT 1 FROM collection_items i WHERE i.collection_id = c.id
                AND (i.repo_id = :item{number} OR i.linked_id = :item{number}))"""
        )
    if collection_filter.search:
        values["pattern"] = containing(collection_filter.search)
        conditions.append("c.search_text LIKE :pattern ESCAPE '!'")
    if after is not None:
        values["after_time"], values["after_id"] = after
        conditions.append("(c.updated_at, c.id) < (:after_time, :after_id)")
    rows = await tx.all(
        f"""
        SELECT {COLLECTION} FROM collections c {COLLECTION_OWNERS} WHERE {" AND ".join(conditions)}
        ORDER BY c.updated_at DESC, c.id DESC LIMIT :limit
        """,
        values,
    )
    return [Collection(*row) for row in rows]


async def of_owner(tx: Tx, owner_id: str, visible: VisibleCollections, limit: int) -> list[Collection]:
    """The first collections of an owner that the caller may see, in the owner's order."""
    values: dict[str, str | int] = {"owner_id": owner_id, "limit": limit}
    rows = await tx.all(
        f"""
        SELECT {COLLECTION} FROM collections c {COLLECTION_OWNERS}
        WHERE c.owner_id = :owner_id AND {visible_collections_sql("c", visible, values)}
        ORDER BY c.position, c.id LIMIT :limit
        """,
        values,
    )
    return [Collection(*row) for row in rows]


async def place_of(tx: Tx, collection: Collection, visible: VisibleCollections) -> int:
    """How many of the owner's collections that the caller may see come before this one."""
    values: dict[str, str | int] = {
        "owner_id": collection.owner_id,
        "position": collection.position,
        "id": collection.id,
    }
    row = await tx.one(
        f"""
        SELECT count(*) AS n FROM collections c WHERE c.owner_id = :owner_id
            AND (c.position, c.id) < (:position, :id) AND {visible_collections_sql("c", visible, values)}
        """,
        values,
    )
    return int(row["n"]) if row else 0


async def items(
    tx: Tx, collection_id: str, visible_repos: VisibleRepos, visible_collections: VisibleCollections, limit: int
) -> list[Item]:
    """The first items of a collection that the caller may see, in order."""
    values: dict[str, str | int] = {"collection_id": collection_id, "limit": limit}
    rows = await tx.all(
        f"""
        SELECT i.id, i.note, {_REPO}, {_columns("l", "lu", "lo")}
        FROM collection_items i
        LEFT JOIN repos r ON r.id = i.repo_id {OWNERS}
        LEFT JOIN collections l ON l.id = i.linked_id {_owners("l", "lu", "lo")}
        WHERE i.collection_id = :collection_id
            AND ((r.id IS NOT NULL AND {visible_repos_sql(visible_repos, values)})
            OR (l.id IS NOT NULL AND {visible_collections_sql("l", visible_collections, values)}))
        ORDER BY i.position, i.id LIMIT :limit
        """,
        values,
    )
    return [_item(place, *row) for place, row in enumerate(rows)]


def _item(place: int, item_id: str, note: str, *columns: Any) -> Item:
    repo, linked = columns[:_REPO_COLUMNS], columns[_REPO_COLUMNS:]
    return Item(
        item_id,
        note,
        place,
        Repo(*repo) if repo[0] is not None else None,
        Collection(*linked) if linked[0] is not None else None,
    )


def visible_collections_sql(table: str, visible: VisibleCollections, values: dict[str, str | int]) -> str:
    if not visible.owners:
        return f"{table}.private = 0"
    return f"({table}.private = 0 OR {table}.owner_id IN ({_placeholders('private_of', visible.owners, values)}))"


def _placeholders(name: str, members: Sequence[str], values: dict[str, str | int]) -> str:
    """The placeholders of an IN list; NULL for an empty list, which matches nothing."""
    params = {f"{name}{number}": member for number, member in enumerate(members)}
    values.update(params)
    return ", ".join(f":{param}" for param in params) or "NULL"


# Changes. Transactions that change the positions of collections lock the owner first, then the collection.

_ADD = insert_row(
    """
    INSERT INTO collections (id, owner_kind, owner_id, title, title_key, description, search_text, theme, private,
        position, created_at, updated_at)
    """,
    "ON CONFLICT (owner_id, title_key) DO NOTHING RETURNING id",
)


async def add(tx: Tx, values: Params) -> bool:
    """Insert a collection; False if the owner has one with this title."""
    return await tx.one(_ADD, values) is not None


async def id_with_title(tx: Tx, owner_id: str, title_key: str) -> str | None:
    row = await tx.one(
        "SELECT id FROM collections WHERE owner_id = :owner_id AND title_key = :title_key",
        {"owner_id": owner_id, "title_key": title_key},
    )
    return row["id"] if row else None


async def ids_of_owner(tx: Tx, owner_id: str) -> list[str]:
    """The ids of an owner's collections, in order."""
    rows = await tx.all(
        "SELECT id FROM collections WHERE owner_id = :owner_id ORDER BY position, id", {"owner_id": owner_id}
    )
    return [row["id"] for row in rows]


async def count_of_owner(db: Database, owner_id: str) -> int:
    row = await db.one("SELECT count(*) AS n FROM collections WHERE owner_id = :owner_id", {"owner_id": owner_id})
    return int(row["n"]) if row else 0


async def last_collection_position(tx: Tx, owner_id: str) -> int:
    """The highest position of an owner's collection; -1 if the owner has none."""
    row = await tx.one(
        "SELECT COALESCE(max(position), -1) AS n FROM collections WHERE owner_id = :owner_id", {"owner_id": owner_id}
    )
    return int(row["n"]) if row else -1


async def set_positions(tx: Tx, ids: Sequence[str]) -> None:
    """Number collections in this order."""
    await tx.exec_many(
        "UPDATE collections SET position = :position WHERE id = :id AND position <> :position",
        [{"id": each, "position": position} for position, each in enumerate(ids)],
    )


async def lock(tx: Tx, collection_id: str, now: int) -> bool:
    """Lock a collection until the transaction ends and set the time of its last change; False if it was deleted."""
    sql = "UPDATE collections SET updated_at = :now WHERE id = :id"
    return await tx.exec(sql, {"id": collection_id, "now": now}) == 1


async def update(tx: Tx, values: Params) -> None:
    await tx.exec(
        """
        UPDATE collections SET title = :title, title_key = :title_key, description = :description,
            search_text = :search_text, theme = :theme, private = :private WHERE id = :id
        """,
        values,
    )


async def remove(tx: Tx, collection_id: str) -> bool:
    return await tx.exec("DELETE FROM collections WHERE id = :id", {"id": collection_id}) == 1


async def remove_of_owner(tx: Tx, owner_id: str) -> None:
    await tx.exec("DELETE FROM collections WHERE owner_id = :owner_id", {"owner_id": owner_id})


async def target_exists(tx: Tx, repo_id: str | None, linked_id: str | None) -> bool:
    """Whether the target of an item exists; if so, prevents its deletion until the transaction ends."""
    table, target = ("repos", repo_id) if repo_id else ("collections", linked_id)
    return await tx.one(f"SELECT 1 FROM {table} WHERE id = :id /*pg FOR KEY SHARE */", {"id": target}) is not None


_ADD_ITEM = insert_row(
    "INSERT INTO collection_items (id, collection_id, repo_id, linked_id, note, position)",
    "ON CONFLICT DO NOTHING RETURNING id",
)


async def add_item(tx: Tx, values: Params) -> bool:
    """Insert an item; False if the collection already has it."""
    return await tx.one(_ADD_ITEM, values) is not None


async def item_ids(tx: Tx, collection_id: str) -> list[str]:
    """The ids of all items, in order."""
    rows = await tx.all(
        "SELECT id FROM collection_items WHERE collection_id = :id ORDER BY position, id", {"id": collection_id}
    )
    return [row["id"] for row in rows]


async def last_item_position(tx: Tx, collection_id: str) -> int:
    """The highest position of an item; -1 for an empty collection."""
    row = await tx.one(
        "SELECT COALESCE(max(position), -1) AS n FROM collection_items WHERE collection_id = :id",
        {"id": collection_id},
    )
    return int(row["n"]) if row else -1


async def set_item_positions(tx: Tx, ids: Sequence[str]) -> None:
    await tx.exec_many(
        "UPDATE collection_items SET position = :position WHERE id = :id AND position <> :position",
        [{"id": each, "position": position} for position, each in enumerate(ids)],
    )


async def set_note(tx: Tx, item_id: str, note: str) -> None:
    await tx.exec("UPDATE collection_items SET note = :note WHERE id = :id", {"id": item_id, "note": note})


async def remove_item(tx: Tx, item_id: str) -> None:
    await tx.exec("DELETE FROM collection_items WHERE id = :id", {"id": item_id})
