"""A collection as JSON, in the shape that existing clients read."""

from typing import Any, Literal

import msgspec
from markupsafe import escape
from msgspec import UNSET, UnsetType

from hubgate.server.clock import iso
from hubgate.server.hub.collections.model import Collection, CollectionItems, Item
from hubgate.server.hub.repos.model import Repo, RepoType
from hubgate.server.web.avatars import avatar_url


class CollectionOwner(msgspec.Struct, rename="camel"):
    id: str = msgspec.field(name="_id")
    name: str
    fullname: str
    type: str
    avatar_url: str
    is_pro: bool = False
    is_hf: bool = False
    is_hf_admin: bool = False
    is_mod: bool = False


class CollectionSummary(msgspec.Struct, rename="camel"):
    """A collection in a list, with its first items. It has no `position`: huggingface_hub numbers the list itself."""

    slug: str
    title: str
    owner: CollectionOwner
    # A model, dataset, space or collection, with `_id`, `id`, `type`, `position` and `note`.
    items: list[dict[str, Any]]
    last_updated: str
    theme: str
    private: bool
    share_url: str
    # This hub has no votes and no gated collections.
    upvotes: int = 0
    is_upvoted_by_user: bool = False
    gating: Literal[False] = False
    description: str | UnsetType = UNSET


class CollectionDetails(CollectionSummary, rename="camel", kw_only=True):
    """A collection with all items that the caller may see."""

    # The place among the owner's collections.
    position: int


class CollectionUpdated(msgspec.Struct):
    success: bool
    data: CollectionDetails


class CollectionExists(msgspec.Struct):
    error: str
    slug: str


def summary(base_url: str, found: CollectionItems) -> CollectionSummary:
    return CollectionSummary(**_fields(base_url, found))


def details(base_url: str, found: CollectionItems) -> CollectionDetails:
    return CollectionDetails(**_fields(base_url, found), position=found.place)


def _fields(base_url: str, found: CollectionItems) -> dict[str, Any]:
    collection = found.collection
    return {
        "slug": collection.slug,
        "title": collection.title,
        "owner": _owner(collection),
        "items": [_item(base_url, item) for item in found.items],
        "last_updated": iso(collection.updated_at),
        "theme": collection.theme,
        "private": bool(collection.private),
        "share_url": base_url + collection.path,
        "description": collection.description or UNSET,
    }


def _owner(collection: Collection) -> CollectionOwner:
    return CollectionOwner(
        id=collection.owner_id,
        name=collection.owner_name,
        fullname=collection.owner_fullname or collection.owner_name,
        type=collection.owner_kind,
        avatar_url=avatar_url(collection.owner_id),
    )


def _item(base_url: str, item: Item) -> dict[str, Any]:
    fields: dict[str, Any] = {"_id": item.id, "position": item.place, "type": item.type}
    if item.note:
        fields["note"] = {"text": item.note, "html": str(escape(item.note))}
    if item.repo:
        return fields | _repo(item.repo)
    return fields | (_linked(base_url, item.linked) if item.linked else {})


def _repo(repo: Repo) -> dict[str, Any]:
    of_space = {"sdk": repo.sdk} if repo.repo_type is RepoType.SPACE else {}
    return {
        "id": repo.full_name,
        "author": repo.owner_name,
        "repoType": repo.type,
        "private": bool(repo.private),
        "gated": repo.gated or False,
        "createdAt": iso(repo.created_at),
        "lastModified": iso(repo.updated_at),
        "downloads": 0,
        "likes": 0,
        "isLikedByUser": False,
        **of_space,
    }


def _linked(base_url: str, linked: Collection) -> dict[str, Any]:
    """A collection as an item: one client reads `id`, another `slug`."""
    return {
        "id": linked.id,
        "slug": linked.slug,
        "title": linked.title,
        "description": linked.description,
        "owner": _owner(linked),
        "theme": linked.theme,
        "private": bool(linked.private),
        "lastUpdated": iso(linked.updated_at),
        "shareUrl": base_url + linked.path,
        "upvotes": 0,
        "isUpvotedByUser": False,
    }
