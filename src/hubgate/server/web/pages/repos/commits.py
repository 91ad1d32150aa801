"""`/commits/{rev}` and `/commit/{sha}`: the history, and one commit."""

from urllib.parse import urlencode

from hubgate.server.access.actions import Action
from hubgate.server.edge.routes import Route
from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.hub.git import diffs
from hubgate.server.hub.repos import history_pages
from hubgate.server.hub.repos.history_pages import LAST_PAGE, from_cursor, from_number
from hubgate.server.hub.repos.model import Repo
from hubgate.server.web.pages.repos.page_context import MAX_PAGES, RepoLocation, RepoPageContext, page_number

ROWS = 50


def routes(base: RepoPageContext) -> list[Route]:
    async def log(request: HubRequest, repo: Repo) -> Response:
        rev = request.param("rev")
        location = RepoLocation(repo, rev, await base.revision(repo, rev))
        number, cursor = page_number(request), request.query().get("cursor")
        if number > LAST_PAGE and not cursor:
            raise NotFound("Page not found in this list.")
        total = await history_pages.total_commits(base.repos, repo, location.revision)
        position = from_cursor(cursor) if cursor else from_number(location.sha, number - 1, ROWS, total)
        page = await history_pages.page_from(base.repos, repo, location.revision, position, ROWS)
        if not page.commits:
            raise NotFound("Page not found in this list.")
        older = urlencode({"page": min(number + 1, MAX_PAGES), "cursor": page.next_cursor}) if page.next_cursor else ""
        return base.show(
            request,
            repo,
            "commits.html",
            "files",
            location=location,
            commits=page.commits,
            newer=f"?page={min(number - 1, LAST_PAGE)}" if number > 1 else "",
            older=f"?{older}" if older else "",
            **await base.picker(location),
        )

    async def show_commit(request: HubRequest, repo: Repo) -> Response:
        sha = request.param("sha")
        revision = await base.revision(repo, sha)
        may_read = base.may(request, repo, Action.REPO_READ_CONTENT)
        found = await diffs.commit_diff(base.repos.folders.of(repo.id), revision.sha, content=may_read)
        location = RepoLocation(repo, revision.sha, revision)
        return base.show(request, repo, "commit.html", "files", location=location, found=found, may_read=may_read)

    return [
        *base.views("/commits/{rev:path}", log, "The history of a repo"),
        *base.views("/commit/{sha}", show_commit, "One commit of a repo"),
    ]
