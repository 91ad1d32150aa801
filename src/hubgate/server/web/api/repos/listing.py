"""`GET /api/models`, `/api/datasets`, `/api/spaces`: lists of repos, most recently changed first."""

from typing import Any

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.edge.routes import THE_HUB, Endpoint, Query, Route, without_subject
from hubgate.server.errors import BadRequest
from hubgate.server.http.forms import Fields
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.listing import listing
from hubgate.server.hub.listing.store import SORT_COLUMNS, RepoFilter
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import RepoType
from hubgate.server.paging import parse_page
from hubgate.server.web import repos_without_namespace
from hubgate.server.web.api.listing import PAGING, page_response
from hubgate.server.web.api.repos import queries, wire

MAX_VALUES = 20
LONGEST_SEARCH = 200
# Sorting by a statistic that this hub does not collect (_UNCOUNTED) means sorting by createdAt.
_SORTS = {
    "createdAt": "createdAt",
    "created_at": "createdAt",
    "lastModified": "lastModified",
    "last_modified": "lastModified",
}
_UNCOUNTED = ("likes", "downloads", "trendingScore", "trending_score", "likes30d")

_QUERY = (
    *PAGING,
    Query("author", "Only repos of this user or organization."),
    Query("search", "A part of namespace/name; may be repeated, all must match."),
    Query("filter", "A tag; may be repeated, all must match."),
    Query("pipeline_tag", "The task of a model, from its card."),
    Query("sort", "createdAt or lastModified.", {"type": "string", "enum": [*SORT_COLUMNS, *_UNCOUNTED]}),
    Query("direction", "1 sorts in ascending order."),
    Query("full", "Also return the card's data.", {"type": "boolean"}),
    Query("gated", "true: only gated repos; false: only repos that are not gated.", {"type": "boolean"}),
    Query("expand", "Only these fields; may be repeated."),
)


def routes(repos: Repos) -> list[Route]:
    def of_type(kind: RepoType) -> Route:
        async def list_all(request: HubRequest) -> JsonResponse:
            fields = request.query_fields()
            repo_filter = await _repo_filter(repos, kind, fields)
            page_request = parse_page(queries.paging(fields), listing.CURSOR)
            page = await listing.list_repos(repos, caller_of(request).identity, repo_filter, page_request)
            expand = queries.all_values(fields, "expand")
            card = queries.flag(fields, "full") or queries.flag(fields, "cardData") or "cardData" in expand

            def render(repo: Any) -> dict[str, Any]:
                described = wire.describe(repo, card=card)
                return wire.select_fields(described, expand) if expand else described

            return page_response(request, repos.base_url, page, render)

        return Route(
            "GET",
            f"/api/{kind.plural}",
            Endpoint(Action.REPO_LIST, THE_HUB, without_subject(list_all)),
            Surface.API,
            f"List every {kind.value} you may see",
            query=_QUERY,
            answers={200: ("One page.", list[dict[str, Any]])},
        )

    return [create(kind) for kind in RepoType for create in (of_type, repos_without_namespace.info_route)]


async def _repo_filter(repos: Repos, kind: RepoType, fields: Fields) -> RepoFilter:
    sort = queries.last_value(fields, "sort", "lastModified")
    if sort not in _SORTS and sort not in _UNCOUNTED:
        raise BadRequest(f"sort must be one of {', '.join(SORT_COLUMNS)}.")
    tags = [tag for value in queries.all_values(fields, "filter") for tag in value.split(",") if tag]
    # The task is one of the tags derived from a model's card.
    tags += [task for task in queries.all_values(fields, "pipeline_tag") if task]
    search_terms = [text.strip()[:LONGEST_SEARCH] for text in queries.all_values(fields, "search") if text.strip()]
    if len(search_terms) > MAX_VALUES:
        raise BadRequest(f"At most {MAX_VALUES} values of search are accepted.")
    if len(tags) > MAX_VALUES:
        raise BadRequest(f"At most {MAX_VALUES} values of filter are accepted.")
    author, owner_id = queries.last_value(fields, "author"), ""
    if author:
        owner = await store.owner_named(repos.db, author)
        # Matches no id, so that the list of an unknown author is empty.
        owner_id = owner.id if owner else "-"
    gated = queries.last_value(fields, "gated")
    return RepoFilter(
        type=kind.value,
        owner_id=owner_id,
        search_terms=search_terms,
        tags=tags,
        gated=queries.flag(fields, "gated") if gated else None,
        sort=_SORTS.get(sort, "createdAt"),
        descending=queries.last_value(fields, "direction", "-1") != "1",
    )
