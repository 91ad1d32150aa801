"""`/compare/{revisions}`: what changed between two revisions of a repo, as text."""

from hubgate.server.access.actions import Action
from hubgate.server.edge.routes import Query, Route
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import PlainTextResponse
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import comparisons
from hubgate.server.hub.repos.model import Repo
from hubgate.server.web.api.repos import queries
from hubgate.server.web.repo_routes import PULL_REQUEST_ONLY, api_routes, repo_endpoint


def routes(repos: Repos) -> list[Route]:
    async def compare(request: HubRequest, repo: Repo) -> PlainTextResponse:
        found = await comparisons.find(repos, repo, request.param("revisions"))
        diff = await comparisons.diff(repos, repo, found, raw=queries.flag(request.query_fields(), "raw"))
        headers = {PULL_REQUEST_ONLY: "true"} if found.in_pull_request else {}
        return PlainTextResponse(diff, headers=headers)

    return api_routes(
        "GET",
        "/compare/{revisions:path}",
        # Changed lines are content, which the gate of a repo protects.
        repo_endpoint(repos, Action.REPO_READ_CONTENT, compare),
        "What changed in a repo: `base..head`, `base...head` (from their merge base), or a revision and its parent",
        {
            200: ("The changes as git prints them, up to 1 MiB of complete lines.", None),
            400: ("With raw: too many files changed.", None),
        },
        query=(Query("raw", "Instead one line per file, as `git diff --raw` prints it.", {"type": "boolean"}),),
    )
