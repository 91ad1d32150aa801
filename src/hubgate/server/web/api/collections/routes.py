"""`/api/collections`: list, get, create, change and delete collections."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of, caller_of
from hubgate.server.access.identity import Identity
from hubgate.server.access.resource import Account, Organization
from hubgate.server.edge.routes import KIB, THE_HUB, Endpoint, Locator, Query, Route, Target, without_subject
from hubgate.server.errors import BadRequest
from hubgate.server.http.forms import Fields
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.hub.collections import changes, reading
from hubgate.server.hub.collections.changes import CollectionChanges, NewCollection, TitleTaken
from hubgate.server.hub.collections.model import Collection
from hubgate.server.hub.collections.store import CollectionFilter
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import RepoOwner
from hubgate.server.paging import parse_page
from hubgate.server.web.api.answers import NO_TOKEN
from hubgate.server.web.api.collections import items, wire
from hubgate.server.web.api.collections.wire import CollectionDetails, CollectionExists, CollectionSummary
from hubgate.server.web.api.listing import PAGING, page_response
from hubgate.server.web.api.repos import queries
from hubgate.server.web.api.repos.lifecycle import read_signed_in
from hubgate.server.web.collection_routes import collection_endpoint, new_collection_owner, visible_item

PATH = "/api/collections"
MAX_FILTERS = 20
LONGEST_SEARCH = 200
# The hub has no votes or trends, so each of these sorts by the last change.
_SORTS = ("lastModified", "trending", "upvotes")

_QUERY = (
    *PAGING,
    Query("owner", "Only collections of this user or organization; may be repeated, any may match."),
    Query("item", "Only collections with this item, such as models/acme/tiny; may be repeated, all must match."),
    Query("q", "A part of the title or the description."),
    Query("sort", "The most recently changed collection is always first.", {"type": "string", "enum": list(_SORTS)}),
)
MISSING: Mapping[int, tuple[str, Any]] = {404: ("Collection not found, or you may not see it.", None)}
WRITE_ERRORS: Mapping[int, tuple[str, Any]] = {
    **NO_TOKEN,
    403: ("The token or the role does not permit this.", None),
    **MISSING,
}


Theme = Literal["orange", "blue", "green", "purple", "pink", "indigo"]


class CreateCollection(msgspec.Struct, rename="camel"):
    """A new collection. `namespace` is a user or an organization, by default the caller."""

    title: str
    namespace: str | None = None
    description: str | None = None
    private: bool = False
    theme: Theme = "orange"


class ChangeCollection(msgspec.Struct):
    title: str | None = None
    description: str | None = None
    private: bool | None = None
    theme: Theme | None = None
    position: int | None = None


class _Creation(NamedTuple):
    body: CreateCollection
    owner: RepoOwner


def routes(repos: Repos) -> list[Route]:
    async def list_all(request: HubRequest) -> JsonResponse:
        fields, identity = request.query_fields(), caller_of(request).identity
        collection_filter = await _filter(repos, identity, fields)
        page_request = parse_page(queries.paging(fields), reading.CURSOR)
        page = await reading.list_collections(repos, identity, collection_filter, page_request)
        return page_response(request, repos.base_url, page, lambda found: wire.summary(repos.base_url, found))

    async def show(request: HubRequest, collection: Collection) -> JsonResponse:
        return JsonResponse(await details(request, collection))

    async def details(request: HubRequest, collection: Collection) -> CollectionDetails:
        found = await reading.with_items(repos, caller_of(request).identity, collection)
        return wire.details(repos.base_url, found)

    async def find_new_owner(request: HubRequest) -> Target[_Creation]:
        body = await read_signed_in(request, CreateCollection)
        owner = await new_collection_owner(repos, body.namespace or caller_of(request).user.name)
        return Target(_Creation(body, owner), owner.namespace)

    async def create(request: HubRequest, new: _Creation) -> JsonResponse:
        body = new.body
        requested = NewCollection(body.title, body.description or "", body.private, body.theme)
        try:
            created = await changes.create(repos, new.owner, requested, actor_of(request))
        except TitleTaken as taken:
            return _exists(taken)
        return await show(request, created)

    async def update(request: HubRequest, collection: Collection) -> JsonResponse:
        body = await request.read_json(ChangeCollection)
        requested = CollectionChanges(body.title, body.description, body.private, body.theme, body.position)
        try:
            changed = await changes.update(repos, collection, requested, actor_of(request))
        except TitleTaken as taken:
            return _exists(taken)
        return JsonResponse(wire.CollectionUpdated(success=True, data=await details(request, changed)))

    async def delete(request: HubRequest, collection: Collection) -> JsonResponse:
        await changes.delete(repos, collection, actor_of(request))
        return JsonResponse({})

    create_endpoint = Endpoint(Action.COLLECTION_CREATE, Locator((Account, Organization), find_new_owner), create)
    read, write = Action.COLLECTION_READ, Action.COLLECTION_WRITE
    at = PATH + "/{owner}/{slug}"
    taken = {409: ("The owner has a collection with this title; slug names it.", CollectionExists)}
    return [
        Route(
            "GET",
            PATH,
            Endpoint(Action.COLLECTION_LIST, THE_HUB, without_subject(list_all)),
            Surface.API,
            "List every collection you may see, with its first items",
            query=_QUERY,
            answers={200: ("One page.", list[CollectionSummary])},
        ),
        Route(
            "GET",
            at,
            collection_endpoint(repos, read, show),
            Surface.API,
            "A collection with its items",
            answers={200: ("The collection.", CollectionDetails), **MISSING},
        ),
        Route(
            "POST",
            PATH,
            create_endpoint,
            Surface.API,
            "Create a collection",
            body=CreateCollection,
            answers={**WRITE_ERRORS, 200: ("The collection.", CollectionDetails), **taken},
            body_cap=16 * KIB,
        ),
        Route(
            "PATCH",
            at,
            collection_endpoint(repos, write, update),
            Surface.API,
            "Change a collection, or its place among the owner's collections",
            body=ChangeCollection,
            answers={**WRITE_ERRORS, 200: ("The collection.", wire.CollectionUpdated), **taken},
            body_cap=16 * KIB,
        ),
        Route(
            "DELETE",
            at,
            collection_endpoint(repos, write, delete),
            Surface.API,
            "Delete a collection; its repos stay",
            answers={**WRITE_ERRORS, 200: ("The collection is deleted.", None)},
        ),
        *items.routes(repos, at + "/items", details, WRITE_ERRORS),
    ]


def _exists(taken: TitleTaken) -> JsonResponse:
    # Clients that accept an existing collection read its slug from here.
    body = CollectionExists(taken.message, taken.other.slug)
    return JsonResponse(body, 409, {"x-error-message": taken.message})


async def _filter(repos: Repos, identity: Identity, fields: Fields) -> CollectionFilter:
    sort = queries.last_value(fields, "sort", _SORTS[0])
    if sort not in _SORTS:
        raise BadRequest(f"sort must be one of {', '.join(_SORTS)}.")
    owners = [name for name in queries.all_values(fields, "owner") if name]
    item_names = [name for name in queries.all_values(fields, "item") if name]
    if max(len(owners), len(item_names)) > MAX_FILTERS:
        raise BadRequest(f"At most {MAX_FILTERS} values of owner and of item are accepted.")
    return CollectionFilter(
        owners=await _owner_ids(repos, owners) if owners else None,
        items=[await _item_id(repos, identity, name) for name in item_names],
        search=queries.last_value(fields, "q").strip()[:LONGEST_SEARCH].casefold(),
    )


async def _owner_ids(repos: Repos, names: list[str]) -> list[str]:
    found = [await repo_store.owner_named(repos.db, name) for name in names]
    return [owner.id for owner in found if owner]


async def _item_id(repos: Repos, identity: Identity, name: str) -> str:
    """The id of an item like `models/acme/tiny`; an id that matches nothing if the item is missing or the caller may
    not see it.
    """
    plural, _, item_id = name.partition("/")
    target = await visible_item(repos, identity, plural.removesuffix("s"), item_id)
    return target.id if target else "-"
