"""`/tree/{rev}/{path}`: the content of a folder."""

from starlette.responses import RedirectResponse, Response

from hubgate.server.edge.routes import Route
from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.git import history, objects
from hubgate.server.hub.git.folder_pages import folder_page
from hubgate.server.hub.git.objects import EntryType
from hubgate.server.hub.repos.model import Repo
from hubgate.server.web.pages.repos.frame import Frame, Spot, address
from hubgate.server.web.pages.repos.page_numbers import page_number

ROWS = 100
# The last change of each row is searched in this many commits; a deeper search is too expensive.
DEEPEST = 100
_VERBS = ("tree", "commits")


def routes(frame: Frame) -> list[Route]:
    async def pick(request: HubRequest, repo: Repo) -> Response:
        """Redirect from the picker's form, which cannot construct an address itself."""
        query = request.query()
        verb, rev = query.get("to", "tree"), query.get("rev", "main")
        if verb not in _VERBS:
            raise NotFound("There is no such list.")
        return RedirectResponse(address(repo, verb, rev, query.get("path", "") if verb == "tree" else ""), 303)

    async def tree(request: HubRequest, repo: Repo) -> Response:
        spot = await frame.spot(request, repo)
        number, folder = page_number(request), frame.repos.folders.of(repo.id)
        found = await folder_page(folder, spot.sha, spot.path, (number - 1) * ROWS, ROWS)
        if found is None:
            return await _redirect_to_file(spot)
        if not found.entries and number > 1:
            raise NotFound("The list has no such page.")
        paths = [entry.path for entry in found.entries]
        changes = await history.recent_changes(folder, spot.sha, paths, DEEPEST)
        newest = await history.newest(folder, spot.sha)
        return frame.show(
            request,
            repo,
            "tree.html",
            "files",
            spot=spot,
            entries=found.entries,
            is_folder=EntryType.DIRECTORY,
            total=found.total,
            changes=changes,
            newest=newest,
            number=number,
            last=max(1, -(-found.total // ROWS)),
            **await frame.picker(spot),
        )

    async def _redirect_to_file(spot: Spot) -> Response:
        entry = await objects.entry_at(frame.repos.folders.of(spot.repo.id), spot.sha, spot.path)
        if entry is None:
            raise NotFound(f"There is no folder {spot.path[:200]} at {spot.rev[:100]}.")
        return RedirectResponse(spot.to("blob", spot.path), 303)

    return [
        *frame.views("/tree", pick, "Leads to a repo's files at a revision"),
        *frame.views("/tree/{rest:path}", tree, "The files of a repo"),
    ]
