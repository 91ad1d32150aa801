"""`/api/collections/{owner}/{slug}/items`: add, change, reorder and remove the items of a collection."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.decision import HIDDEN_COLLECTION, HIDDEN_REPO
from hubgate.server.edge.routes import KIB, Route
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.hub.collections import items
from hubgate.server.hub.collections.model import Collection
from hubgate.server.hub.context import Repos
from hubgate.server.web.api.collections.wire import CollectionDetails
from hubgate.server.web.collection_routes import collection_endpoint, visible_item

Details = Callable[[HubRequest, Collection], Awaitable[CollectionDetails]]


class ItemReference(msgspec.Struct):
    """A repo as `namespace/name`, or a collection by its slug or id. Papers and buckets do not exist here."""

    id: str
    type: Literal["model", "dataset", "space", "collection", "paper", "bucket"]


class AddItem(msgspec.Struct):
    item: ItemReference
    note: str | None = None


class ChangeItem(msgspec.Struct):
    """`position` counts the items that the caller sees, from 0."""

    position: int | None = None
    note: str | None = None


def routes(repos: Repos, path: str, details: Details, answers: Mapping[int, tuple[str, Any]]) -> list[Route]:
    async def add(request: HubRequest, collection: Collection) -> JsonResponse:
        body, identity = await request.read_json(AddItem), caller_of(request).identity
        target = await visible_item(repos, identity, body.item.type, body.item.id)
        if target is None:
            # The response is the same for a missing item and for one that the caller may not see.
            raise (HIDDEN_COLLECTION if body.item.type == "collection" else HIDDEN_REPO).error()
        await items.add(repos, collection, target, body.note or "")
        return JsonResponse(await details(request, collection))

    async def update(request: HubRequest, collection: Collection) -> JsonResponse:
        body, identity = await request.read_json(ChangeItem), caller_of(request).identity
        await items.update(repos, identity, collection, request.param("item"), body.note, body.position)
        return JsonResponse(await details(request, collection))

    async def remove(request: HubRequest, collection: Collection) -> JsonResponse:
        await items.remove(repos, caller_of(request).identity, collection, request.param("item"))
        return JsonResponse({})

    write = Action.COLLECTION_WRITE
    return [
        Route(
            "POST",
            path,
            collection_endpoint(repos, write, add),
            Surface.API,
            "Add a repo or a collection to a collection",
            body=AddItem,
            answers={
                **answers,
                200: ("The collection.", CollectionDetails),
                409: ("The item is already in the collection.", None),
            },
            body_cap=16 * KIB,
        ),
        Route(
            "PATCH",
            path + "/{item}",
            collection_endpoint(repos, write, update),
            Surface.API,
            "Change the note of an item, or its place",
            body=ChangeItem,
            answers={**answers, 200: ("The collection.", CollectionDetails)},
            body_cap=16 * KIB,
        ),
        Route(
            "DELETE",
            path + "/{item}",
            collection_endpoint(repos, write, remove),
            Surface.API,
            "Remove an item from a collection",
            answers={**answers, 200: ("The item is removed.", None)},
        ),
    ]
