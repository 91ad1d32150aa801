"""`/search`: what the visitor may see of repos, accounts, collections and discussions that match a text."""

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.edge.routes import THE_HUB, Endpoint, Query, Route, without_subject
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.search.queries import LONGEST_TEXT
from hubgate.server.hub.search.searching import CURSOR, Section, search
from hubgate.server.paging import PageRequest
from hubgate.server.web.pages.listing import ListQuery
from hubgate.server.web.rendering import Pages

PATH = "/search"
ROWS = 20
ROWS_OF_EACH = 5
# By the value of `type`, in the order of the page.
SECTIONS = {
    "repos": (Section.REPOS, "Repos"),
    "accounts": (Section.ACCOUNTS, "Users and organizations"),
    "collections": (Section.COLLECTIONS, "Collections"),
    "discussions": (Section.DISCUSSIONS, "Discussions"),
}


def routes(pages: Pages, repos: Repos) -> list[Route]:
    async def show(request: HubRequest) -> Response:
        query = request.query()
        text = query.get("q", "").strip()[:LONGEST_TEXT]
        kind = query.get("type", "")
        chosen = {kind: SECTIONS[kind]} if kind in SECTIONS else SECTIONS
        kind = kind if kind in SECTIONS else ""
        list_query = ListQuery(query, PATH, other_parameters={"q": text, "type": kind})
        page_request = list_query.page(CURSOR, ROWS) if kind else PageRequest(ROWS_OF_EACH)
        sections = [section for section, _ in chosen.values()]
        results = await search(repos, caller_of(request).identity, text, sections, page_request)
        groups = [(name, label, results.pages[section]) for name, (section, label) in chosen.items()]
        next_cursor = groups[0][2].next_cursor if kind else None
        return pages.page(
            request,
            "search.html",
            searched=text,
            kind=kind,
            kinds=[("", "All"), *((name, label) for name, (_, label) in SECTIONS.items())],
            groups=[(name, label, page) for name, label, page in groups if page.items],
            is_complete=results.is_complete,
            **list_query.template_values(next_cursor),
        )

    endpoint = Endpoint(Action.REPO_LIST, THE_HUB, without_subject(show))
    parameters = (Query("q", "Words."), Query("type", f"One of {', '.join(SECTIONS)}."))
    return [Route("GET", PATH, endpoint, Surface.PAGE, "Search everything you may see", query=parameters)]
