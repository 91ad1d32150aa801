"""`/delete/{rev}/{path}`: delete a file, or a folder with its files."""

from typing import Any

from hubgate.server.access.caller import caller_of
from hubgate.server.edge.routes import Route
from hubgate.server.errors import HubError, NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.hub.commits.model import Delete
from hubgate.server.hub.git import objects, trees
from hubgate.server.hub.git.objects import EntryType
from hubgate.server.web.pages.repos.editing.commit_form import CommitFields, Editing, FormTarget, is_shown_in_form
from hubgate.server.web.pages.repos.page_context import RepoLocation

_TEMPLATE = "file_delete.html"
# Beyond this many files the page says "more than".
MAX_COUNTED = 10_000


def routes(editing: Editing) -> list[Route]:
    base = editing.base

    async def counted(location: RepoLocation) -> dict[str, Any]:
        """Values for the page: whether the path is a folder, and its number of files."""
        folder = base.repos.folders.of(location.repo.id)
        entry = await objects.entry_at(folder, location.sha, location.path) if location.path else None
        is_folder = entry is not None and entry.type is EntryType.DIRECTORY
        count = await trees.count_files(folder, location.sha, MAX_COUNTED + 1, location.path) if is_folder else 1
        return {"exists": entry is not None, "is_folder": is_folder, "count": count, "max_counted": MAX_COUNTED}

    async def confirm(request: HubRequest, location: RepoLocation) -> Response:
        values = await counted(location)
        if not values["exists"]:
            raise NotFound(f"File {location.path[:200]} not found at {location.rev[:100]}.")
        return editing.show(request, location, _TEMPLATE, None, **values)

    async def delete(request: HubRequest, target: FormTarget) -> Response:
        location, given = target.location, CommitFields.parse(request.form_fields)
        parent, _, name = location.path.rpartition("/")
        try:
            change = given.change([Delete(location.path, file=True, folder=True)], f"Delete {name}")
            result = await editing.apply(target, caller_of(request), change)
        except HubError as error:
            if not is_shown_in_form(error):
                raise
            return editing.show(request, location, _TEMPLATE, given, error, **await counted(location))
        return editing.redirect(target, result, await _nearest_folder(location, parent))

    async def _nearest_folder(location: RepoLocation, path: str) -> str:
        """The page of the folder, or of the nearest one above it that still exists: git has no empty folders."""
        head = await base.revision(location.repo, location.rev)
        folder = base.repos.folders.of(location.repo.id)
        while path and await objects.entry_at(folder, head.sha, path) is None:
            path = path.rpartition("/")[0]
        return location.to("tree", path)

    tail = "/delete/{rest:path}"
    return [
        *base.routes("GET", tail, editing.page_endpoint(confirm), "Confirm the deletion of a file of a repo"),
        *base.routes("POST", tail, editing.form_endpoint(delete), "Delete a file of a repo", body_cap=512 * 1024),
    ]
