"""`/commits/{rev}` and `/commit/{sha}`: the history, and one step of it."""

from starlette.responses import Response

from hubgate.server.access.actions import Action
from hubgate.server.edge.routes import Route
from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.git import diffs, history
from hubgate.server.hub.repos.model import Repo
from hubgate.server.web.pages.repos.frame import Frame, Spot
from hubgate.server.web.pages.repos.turning import LAST, turned

ROWS = 50


def routes(frame: Frame) -> list[Route]:
    async def log(request: HubRequest, repo: Repo) -> Response:
        rev = request.param("rev")
        spot = Spot(repo, rev, await frame.revision(repo, rev))
        number = turned(request)
        found = await history.recent(frame.repos.folders.of(repo.id), spot.sha, (number - 1) * ROWS, ROWS + 1)
        if not found:
            raise NotFound("The list has no such page.")
        return frame.show(
            request,
            repo,
            "commits.html",
            "files",
            spot=spot,
            commits=found[:ROWS],
            number=number,
            more=len(found) > ROWS and number < LAST,
            **await frame.picker(spot),
        )

    async def one(request: HubRequest, repo: Repo) -> Response:
        sha = request.param("sha")
        revision = await frame.revision(repo, sha)
        may_read = frame.may(request, repo, Action.REPO_READ_CONTENT)
        found = await diffs.changes(frame.repos.folders.of(repo.id), revision.sha, content=may_read)
        spot = Spot(repo, revision.sha, revision)
        return frame.show(request, repo, "commit.html", "files", spot=spot, found=found, may_read=may_read)

    return [
        *frame.views("/commits/{rev:path}", log, "The history of a repo"),
        *frame.views("/commit/{sha}", one, "One commit of a repo"),
    ]
