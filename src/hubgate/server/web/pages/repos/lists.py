"""`/models`, `/datasets`, `/spaces`: repos that the visitor may see, with search, sorting and paging."""

from starlette.responses import Response

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.edge.routes import THE_HUB, Endpoint, PublicHandler, Route, without_subject
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.hub.listing import listing
from hubgate.server.hub.listing.store import RepoFilter
from hubgate.server.hub.repos.model import RepoType
from hubgate.server.web.pages.listing import ListQuery
from hubgate.server.web.pages.repos.frame import Frame

ROWS = 30
LONGEST_SEARCH = 200
SORTS = (("lastModified", "Recently changed"), ("createdAt", "Newest"))


def routes(frame: Frame) -> list[Route]:
    def of_type(kind: RepoType) -> PublicHandler:
        path = f"/{kind.plural}"

        async def every(request: HubRequest) -> Response:
            query = request.query()
            sort = query.get("sort", "")
            sort = sort if sort in dict(SORTS) else SORTS[0][0]
            tag = query.get("filter", "").strip()[:LONGEST_SEARCH]
            other_parameters = {"filter": tag, "sort": sort if sort != SORTS[0][0] else ""}
            asked = ListQuery(query, path, kept=other_parameters)
            searched = [asked.search[:LONGEST_SEARCH]] if asked.search else []
            wanted = RepoFilter(type=kind.value, searched=searched, tags=[tag] if tag else [], sort=sort)
            identity = caller_of(request).identity
            page = await listing.listed(frame.repos, identity, wanted, asked.page(listing.CURSOR, ROWS))
            return frame.pages.page(
                request,
                "repo/list.html",
                kind=kind,
                path=path,
                found=page.items,
                sorts=SORTS,
                sort=sort,
                filter=tag,
                **asked.shown(page.next_cursor),
            )

        return every

    def endpoint(kind: RepoType) -> Endpoint:
        return Endpoint(Action.REPO_LIST, THE_HUB, without_subject(of_type(kind)))

    return [
        Route("GET", f"/{kind.plural}", endpoint(kind), Surface.PAGE, f"Every {kind.value} you may see")
        for kind in RepoType
    ]
