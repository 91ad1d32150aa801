"""`/collections`: the collections that the visitor may see, with search; and the collections on a profile page."""

from typing import Any
from urllib.parse import urlencode

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.policy import decide
from hubgate.server.access.resource import Namespace
from hubgate.server.edge.routes import THE_HUB, Endpoint, Route, without_subject
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.collections import reading
from hubgate.server.hub.collections.store import CollectionFilter
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.web.pages.collections.page_context import LIST, CollectionPageContext
from hubgate.server.web.pages.listing import ListQuery

ROWS = 30
ROWS_ON_PROFILE = 6
LONGEST_SEARCH = 200


def routes(base: CollectionPageContext) -> list[Route]:
    async def show_list(request: HubRequest) -> Response:
        query = request.query()
        owner = await repo_store.owner_named(base.repos.db, query.get("owner", "")) if query.get("owner") else None
        owner_name = owner.name if owner else query.get("owner", "")
        list_query = ListQuery(query, LIST, other_parameters={"owner": owner_name})
        collection_filter = CollectionFilter(
            owners=[owner.id] if owner else [] if owner_name else None,
            search=list_query.search[:LONGEST_SEARCH].casefold(),
        )
        identity = caller_of(request).identity
        page_request = list_query.page(reading.CURSOR, ROWS)
        page = await reading.list_collections(base.repos, identity, collection_filter, page_request)
        return base.pages.page(
            request,
            "collections/list.html",
            path=LIST,
            found=page.items,
            owner=owner_name,
            **list_query.template_values(page.next_cursor),
        )

    endpoint = Endpoint(Action.COLLECTION_LIST, THE_HUB, without_subject(show_list))
    return [Route("GET", LIST, endpoint, Surface.PAGE, "List every collection you may see")]


async def profile_collections(repos: Repos, request: HubRequest, owner: Namespace, name: str) -> dict[str, Any]:
    """Values for profile/collections.html."""
    identity = caller_of(request).identity
    found = await reading.of_owner(repos, identity, owner.id, ROWS_ON_PROFILE + 1)
    return {
        "collections": found[:ROWS_ON_PROFILE],
        "all_collections": f"{LIST}?{urlencode({'owner': name})}" if len(found) > ROWS_ON_PROFILE else "",
        "may_create_collections": decide(identity, Action.COLLECTION_CREATE, owner).allowed,
    }
