"""Creating, changing and deleting collections."""

from typing import Any

import msgspec

from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.audit.record import record
from hubgate.server.errors import Conflict, FieldErrors, NotFound, Unprocessable
from hubgate.server.hub.collections import store
from hubgate.server.hub.collections.model import (
    COLLECTION_GONE,
    MAX_COLLECTIONS,
    THEMES,
    Collection,
    check_description,
    check_theme,
    check_title,
    search_text,
    title_key,
)
from hubgate.server.hub.collections.search_documents import document_of
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos.model import RepoOwner
from hubgate.server.hub.repos.transactions import lock_owner
from hubgate.server.ids import new_id
from hubgate.server.search import store as search_store
from hubgate.server.storage.database import Tx


class TitleTaken(Conflict):
    """Another collection of the owner has the title."""

    def __init__(self, other: Collection) -> None:
        super().__init__(f"{other.owner_name} already has a collection with this title.")
        self.other = other


class NewCollection(msgspec.Struct, frozen=True):
    title: str
    description: str = ""
    private: bool = False
    theme: str = THEMES[0]


class CollectionChanges(msgspec.Struct, frozen=True):
    """Changes to a collection. None leaves a value unchanged."""

    title: str | None = None
    description: str | None = None
    private: bool | None = None
    theme: str | None = None
    # The new place among the owner's collections, from 0.
    place: int | None = None


async def create(repos: Repos, owner: RepoOwner, new: NewCollection, actor: Actor) -> Collection:
    now = repos.clock()
    title, description, theme = check_title(new.title), check_description(new.description), check_theme(new.theme)
    collection_id = new_id(now)

    async def unit(tx: Tx) -> Collection:
        locked = await lock_owner(tx, owner)
        existing = await store.ids_of_owner(tx, owner.id)
        if len(existing) >= MAX_COLLECTIONS:
            message = f"{locked.name} has {MAX_COLLECTIONS:,} collections, the most that are allowed."
            raise FieldErrors({"owner": message})
        values: dict[str, str | int] = {
            "id": collection_id,
            "owner_kind": owner.kind,
            "owner_id": owner.id,
            **_texts(title, description),
            "theme": theme,
            "private": int(new.private),
            "position": await store.last_collection_position(tx, owner.id) + 1,
            "created_at": now,
            "updated_at": now,
        }
        if not await store.add(tx, values):
            raise TitleTaken(await _with_title(tx, owner.id, title))
        created = await _existing(tx, collection_id)
        await search_store.put(tx, document_of(created))
        await _record(tx, EntryType.COLLECTION_CREATE, created, f"created the collection {title}", actor, now)
        return created

    return await repos.db.write(unit)


async def update(repos: Repos, collection: Collection, changes: CollectionChanges, actor: Actor) -> Collection:
    """Change a collection. A new place alone does not change `updated_at`."""
    now = repos.clock()
    requested = _checked(changes)

    async def unit(tx: Tx) -> Collection:
        await lock_owner(tx, collection.owner)
        before = await _existing(tx, collection.id)
        after = msgspec.structs.replace(before, **requested)
        if after != before:
            await store.lock(tx, collection.id, now)
            other = await store.id_with_title(tx, before.owner_id, title_key(after.title))
            if other not in (None, collection.id):
                raise TitleTaken(await _with_title(tx, before.owner_id, after.title))
            texts = _texts(after.title, after.description)
            await store.update(tx, {"id": after.id, "theme": after.theme, "private": after.private, **texts})
            changed = [name for name in requested if getattr(before, name) != getattr(after, name)]
            text = f"changed the collection {after.title}: {', '.join(changed)}"
            await _record(tx, EntryType.COLLECTION_UPDATE, after, text, actor, now)
            await search_store.put(tx, document_of(after))
        if changes.place is not None:
            ids = [each for each in await store.ids_of_owner(tx, before.owner_id) if each != collection.id]
            ids.insert(min(changes.place, len(ids)), collection.id)
            await store.set_positions(tx, ids)
        return await _existing(tx, collection.id)

    return await repos.db.write(unit)


async def delete(repos: Repos, collection: Collection, actor: Actor) -> None:
    """Delete a collection and its items; the repos in it stay."""
    now = repos.clock()

    async def unit(tx: Tx) -> None:
        await lock_owner(tx, collection.owner)
        if not await store.remove(tx, collection.id):
            raise NotFound(COLLECTION_GONE)
        await search_store.remove(tx, collection.id)
        text = f"deleted the collection {collection.title}"
        await _record(tx, EntryType.COLLECTION_DELETE, collection, text, actor, now)

    await repos.db.write(unit)


def _checked(changes: CollectionChanges) -> dict[str, Any]:
    """The fields to change, validated."""
    if changes.place is not None and changes.place < 0:
        raise Unprocessable("position must be 0 or more.")
    checked = {
        "title": None if changes.title is None else check_title(changes.title),
        "description": None if changes.description is None else check_description(changes.description),
        "private": None if changes.private is None else int(changes.private),
        "theme": None if changes.theme is None else check_theme(changes.theme),
    }
    return {name: value for name, value in checked.items() if value is not None}


def _texts(title: str, description: str) -> dict[str, str]:
    return {
        "title": title,
        "title_key": title_key(title),
        "description": description,
        "search_text": search_text(title, description),
    }


async def _existing(tx: Tx, collection_id: str) -> Collection:
    found = await store.by_id(tx, collection_id)
    if found is None:
        raise NotFound(COLLECTION_GONE)
    return found


async def _with_title(tx: Tx, owner_id: str, title: str) -> Collection:
    return await _existing(tx, await store.id_with_title(tx, owner_id, title_key(title)) or "")


async def _record(tx: Tx, kind: EntryType, collection: Collection, text: str, actor: Actor, now: int) -> None:
    """Add an entry to the owner's audit log, if the owner is an organization."""
    if collection.owner_kind == "org":
        data = {"collection": collection.slug, "collectionId": collection.id, "private": bool(collection.private)}
        await record(tx, collection.owner_id, kind, text, actor, now, data)
