"""Endpoints about one collection, which the path names as `{owner}/{slug}`."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from hubgate.server.access import resource
from hubgate.server.access.actions import Action
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.edge.routes import Endpoint, Handler, Located, Locator, Missing, Target
from hubgate.server.errors import Forbidden
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.collections import reading, store
from hubgate.server.hub.collections.items import Target as ItemTarget
from hubgate.server.hub.collections.model import Collection, id_in_slug
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import RepoOwner

T = TypeVar("T")

FindTarget = Callable[[HubRequest, Collection], Awaitable[Target[T]]]
REPO_TYPES = ("model", "dataset", "space")


def collection_endpoint(repos: Repos, action: Action, handler: Handler[Collection]) -> Endpoint:
    """Create an endpoint for a handler about the collection that the path names."""
    return collection_endpoint_with_target(repos, action, _collection_target, handler)


def collection_endpoint_with_target(
    repos: Repos, action: Action, find_target: FindTarget[T], handler: Handler[T]
) -> Endpoint:
    """Create an endpoint for a handler about the target that `find_target` finds, once the caller is authorized."""

    async def find(request: HubRequest) -> Located[T] | Missing:
        found = await reading.find(repos, request.param("owner"), request.param("slug"))
        if not isinstance(found, Collection):
            return Missing(found)
        return Located(found.as_resource(), partial(find_target, request, found))

    return Endpoint(action, Locator((resource.Collection,), find), handler)


async def _collection_target(_: HubRequest, collection: Collection) -> Target[Collection]:
    return Target(collection, collection.as_resource())


async def visible_item(repos: Repos, identity: Identity, item_type: str, item_id: str) -> ItemTarget | None:
    """The repo or collection that an item names, if the caller may see it."""
    target = await _find_item(repos, item_type, item_id)
    if target is None:
        return None
    action = Action.COLLECTION_READ if isinstance(target, Collection) else Action.REPO_SEE
    return target if decide(identity, action, target.as_resource()).allowed else None


async def _find_item(repos: Repos, item_type: str, item_id: str) -> ItemTarget | None:
    """The repo `namespace/name` of this type, or the collection with this slug or id."""
    if item_type == "collection":
        collection_id = id_in_slug(item_id)
        return await store.by_id(repos.db, collection_id) if collection_id else None
    namespace, _, name = item_id.partition("/")
    return await repo_store.named(repos.db, item_type, namespace, name) if item_type in REPO_TYPES else None


async def new_collection_owner(repos: Repos, namespace: str) -> RepoOwner:
    owner = await repo_store.owner_named(repos.db, namespace)
    if owner is None:
        raise Forbidden(f"You may not create collections in the namespace {namespace[:60]}, or it does not exist.")
    return owner
