"""Lists of the repos that the visitor may see: `/models`, `/datasets`, `/spaces`, with search and sorting, and the
repos of a user or an organization on the profile page.
"""

from typing import Any

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.policy import decide
from hubgate.server.access.resource import Namespace
from hubgate.server.edge.routes import THE_HUB, Endpoint, PublicHandler, Route, without_subject
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.listing import listing
from hubgate.server.hub.listing.store import RepoFilter
from hubgate.server.hub.repos.model import RepoType
from hubgate.server.web.pages.listing import ListQuery
from hubgate.server.web.pages.repos.page_context import RepoPageContext

ROWS = 30
ROWS_OF_OWNER = 20
LONGEST_SEARCH = 200
SORTS = (("lastModified", "Recently changed"), ("createdAt", "Newest"))


def routes(base: RepoPageContext) -> list[Route]:
    def of_type(kind: RepoType) -> PublicHandler:
        path = f"/{kind.plural}"

        async def show_list(request: HubRequest) -> Response:
            query = request.query()
            sort = query.get("sort", "")
            sort = sort if sort in dict(SORTS) else SORTS[0][0]
            tag = query.get("filter", "").strip()[:LONGEST_SEARCH]
            other_parameters = {"filter": tag, "sort": sort if sort != SORTS[0][0] else ""}
            list_query = ListQuery(query, path, other_parameters=other_parameters)
            searched = [list_query.search[:LONGEST_SEARCH]] if list_query.search else []
            repo_filter = RepoFilter(type=kind.value, search_terms=searched, tags=[tag] if tag else [], sort=sort)
            identity = caller_of(request).identity
            page = await listing.list_repos(base.repos, identity, repo_filter, list_query.page(listing.CURSOR, ROWS))
            return base.pages.page(
                request,
                "repo/list.html",
                kind=kind,
                path=path,
                found=page.items,
                sorts=SORTS,
                sort=sort,
                filter=tag,
                **list_query.template_values(page.next_cursor),
            )

        return show_list

    def endpoint(kind: RepoType) -> Endpoint:
        return Endpoint(Action.REPO_LIST, THE_HUB, without_subject(of_type(kind)))

    return [
        Route("GET", f"/{kind.plural}", endpoint(kind), Surface.PAGE, f"List every {kind.value} you may see")
        for kind in RepoType
    ]


async def profile_repos(repos: Repos, request: HubRequest, owner: Namespace, name: str) -> dict[str, Any]:
    """Values for profile/repos.html: the counts by type, and a list of one type."""
    identity, query = caller_of(request).identity, request.query()
    counts = await listing.count_repos(repos, identity, owner.id)
    by_kind = dict(zip(RepoType, (counts.models, counts.datasets, counts.spaces), strict=True))
    first_with_repos = next((kind for kind, count in by_kind.items() if count), RepoType.MODEL)
    kind = next((kind for kind in RepoType if kind.plural == query.get("show")), first_with_repos)
    path = f"/{name}"
    list_query = ListQuery(query, path, other_parameters={"show": kind.plural if "show" in query else ""})
    repo_filter = RepoFilter(type=kind.value, owner_id=owner.id)
    page = await listing.list_repos(repos, identity, repo_filter, list_query.page(listing.CURSOR, ROWS_OF_OWNER))
    return {
        "kinds": [
            (
                listed_kind.plural.capitalize(),
                f"{path}?show={listed_kind.plural}",
                by_kind[listed_kind],
                listed_kind is kind,
            )
            for listed_kind in RepoType
        ],
        "kind": kind,
        "total": sum(by_kind.values()),
        "repos": page.items,
        "may_create": decide(identity, Action.REPO_CREATE, owner).allowed,
        "pages": list_query.template_values(page.next_cursor),
    }
