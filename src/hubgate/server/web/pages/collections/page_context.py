"""Shared parts of the pages about one collection: its endpoints, its header and permissions."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.policy import decide
from hubgate.server.edge.routes import KIB, Handler, Route, Target
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.collections.model import Collection
from hubgate.server.hub.context import Repos
from hubgate.server.web.collection_routes import collection_endpoint_with_target
from hubgate.server.web.rendering import NO_ERRORS, Pages

LIST = "/collections"
PATH = LIST + "/{owner}/{slug}"


class CollectionPageContext(Struct, frozen=True):
    pages: Pages
    repos: Repos

    def route(self, method: str, tail: str, action: Action, handler: Handler[Collection], summary: str) -> Route:
        """Create a route about one collection. An old title or owner name redirects to the current address."""

        async def find_target(request: HubRequest, collection: Collection) -> Target[Collection]:
            is_current = (request.param("owner"), request.param("slug")) == tuple(collection.slug.split("/"))
            moved_to = "" if is_current else collection.path + tail
            return Target(collection, collection.as_resource(), moved_to=moved_to)

        endpoint = collection_endpoint_with_target(self.repos, action, find_target, handler)
        return Route(method, PATH + tail, endpoint, Surface.PAGE, summary, body_cap=16 * KIB)

    def show(
        self,
        request: HubRequest,
        collection: Collection,
        template: str,
        errors: Mapping[str, str] = NO_ERRORS,
        **values: Any,
    ) -> Response:
        identity = caller_of(request).identity
        may_write = decide(identity, Action.COLLECTION_WRITE, collection.as_resource()).allowed
        return self.pages.page(
            request,
            f"collections/{template}",
            errors=errors,
            collection=collection,
            at=collection.path,
            may_write=may_write,
            **values,
        )
