"""Deleting a repo: the page lists the consequences and asks for the repo's name as confirmation."""

from collections.abc import Mapping

from starlette.responses import Response

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of
from hubgate.server.edge.routes import Route
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.discussions import store as discussions
from hubgate.server.hub.git.folder_pages import count_files
from hubgate.server.hub.repos import deletion
from hubgate.server.hub.repos.model import Repo
from hubgate.server.web.pages.repos.frame import Frame
from hubgate.server.web.rendering import NO_ERRORS
from hubgate.server.web.repo_routes import at_repo

# Beyond this many files the page says "more than".
MOST_COUNTED = 10_000


def routes(frame: Frame) -> list[Route]:
    async def ask(request: HubRequest, repo: Repo, errors: Mapping[str, str] = NO_ERRORS, typed: str = "") -> Response:
        folder, repos = frame.repos.folders.of(repo.id), frame.repos
        files = await count_files(folder, repo.head_sha, MOST_COUNTED + 1) if repo.head_sha else 0
        return frame.show(
            request,
            repo,
            "delete.html",
            "settings",
            errors,
            files=files,
            most_counted=MOST_COUNTED,
            discussions=await discussions.count(repos.db, repo.id),
            typed=typed,
        )

    async def delete(request: HubRequest, repo: Repo) -> Response:
        typed = request.form_fields.get("name").strip()
        if typed != repo.full_name:
            return await ask(request, repo, {"name": f"Type {repo.full_name}, as it is written here."}, typed)
        await deletion.delete(frame.repos, repo, actor_of(request))
        return frame.pages.redirect(f"/{repo.owner_name}", f"Deleted {repo.full_name}.")

    path, repos, manage = "/settings/delete", frame.repos, Action.REPO_MANAGE
    return [
        *frame.routes("GET", path, at_repo(repos, manage, ask), "What deleting a repo means"),
        *frame.routes("POST", path, at_repo(repos, manage, delete), "Delete a repo"),
    ]
