"""`/settings` of a repo: visibility, gate, discussions, name and owner; and its deletion, which the user confirms by
typing the repo's name.
"""

from collections.abc import Mapping

from starlette.responses import Response

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of, caller_of
from hubgate.server.access.policy import decide
from hubgate.server.edge.routes import Handler, Route, Target
from hubgate.server.errors import Conflict, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.discussions import store as discussions
from hubgate.server.hub.git.trees import count_files
from hubgate.server.hub.repos import deletion, settings, transfer
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.repos.settings import SettingsChanges
from hubgate.server.web.pages.repos.frame import RepoFrame
from hubgate.server.web.rendering import NO_ERRORS
from hubgate.server.web.repo_routes import ForType, at_repo, at_repo_needing
from hubgate.server.web.repo_targets import RepoMove, move_target, owners_with

_MOVES = (Action.REPO_MANAGE, Action.REPO_CREATE, Action.REPO_LEAVE_REDIRECT)
GATES = (
    ("", "Open: everyone who can see the repo can read its files"),
    ("auto", "Gated: users who request access get it at once"),
    ("manual", "Gated: you decide on each request for access"),
)


# Beyond this many files the page says "more than".
MOST_COUNTED = 10_000


def routes(frame: RepoFrame) -> list[Route]:
    return [*_setting_routes(frame), *_deletion_routes(frame)]


def _setting_routes(frame: RepoFrame) -> list[Route]:
    def shown(request: HubRequest, repo: Repo, errors: Mapping[str, str] = NO_ERRORS, **given: str) -> Response:
        return frame.show(
            request,
            repo,
            "settings.html",
            "settings",
            errors,
            gates=GATES,
            owners=owners_with(caller_of(request).signed_in_person, repo),
            may_manage=frame.may(request, repo, Action.REPO_MANAGE),
            may_redirect=decide(caller_of(request).identity, Action.REPO_LEAVE_REDIRECT, repo.owner.namespace).allowed,
            given={"owner": repo.owner_name, "name": repo.name, "leave_redirect": "on", **given},
        )

    async def show(request: HubRequest, repo: Repo) -> Response:
        return shown(request, repo)

    async def configured(request: HubRequest, repo: Repo, changes: SettingsChanges, done: str) -> Response:
        await settings.configure(frame.repos, repo, changes, actor_of(request))
        return frame.pages.redirect(f"{repo.path}/settings", done)

    async def visibility(request: HubRequest, repo: Repo) -> Response:
        given = request.form_fields.get("visibility")
        if given not in ("public", "private"):
            raise Unprocessable("visibility must be public or private.")
        return await configured(
            request, repo, SettingsChanges(private=given == "private"), f"{repo.full_name} is {given} now."
        )

    async def gate(request: HubRequest, repo: Repo) -> Response:
        given = request.form_fields.get("gated")
        state = "is gated now" if given else "has no gate now"
        return await configured(request, repo, SettingsChanges(gated=given), f"{repo.full_name} {state}.")

    async def discussions(request: HubRequest, repo: Repo) -> Response:
        disabled = request.form_fields.get("discussions") != "on"
        state = "off" if disabled else "on"
        return await configured(
            request, repo, SettingsChanges(discussions_disabled=disabled), f"Discussions are {state} now."
        )

    async def repo_to_move(request: HubRequest, repo: Repo) -> Target[RepoMove]:
        form = request.form_fields
        owner, name, leave = form.get("owner") or repo.owner_name, form.get("name").strip(), form.get("leave_redirect")
        identity = caller_of(request).identity
        return await move_target(frame.repos, identity, repo, owner, name, leave_redirect=leave == "on")

    async def move(request: HubRequest, requested: RepoMove) -> Response:
        repo, owner, to, name = requested.repo, requested.to, requested.namespace, requested.name
        if (owner.id, name) == (repo.owner_id, repo.name):
            return frame.pages.redirect(f"{repo.path}/settings", f"The repo is already {repo.full_name}.")
        try:
            moved = await transfer.move(
                frame.repos, repo, owner, name, actor_of(request), leave_redirect=requested.leave_redirect
            )
        except (Conflict, Unprocessable) as error:
            message = error.message if isinstance(error, Unprocessable) else f"{owner.name}/{name} is taken."
            ticked = request.form_fields.get("leave_redirect")
            return shown(request, repo, {"name": message}, owner=to, name=name, leave_redirect=ticked)
        redirect_note = "redirect here" if requested.redirects else "no longer work"
        return frame.pages.redirect(
            f"{moved.path}/settings", f"Moved to {moved.full_name}. Links to {repo.full_name} {redirect_note}."
        )

    def manages(handler: Handler[Repo]) -> ForType:
        return at_repo(frame.repos, Action.REPO_MANAGE, handler)

    def configures(handler: Handler[Repo]) -> ForType:
        return at_repo(frame.repos, Action.REPO_CONFIGURE, handler)

    move_endpoint = at_repo_needing(frame.repos, _MOVES, repo_to_move, move)
    return [
        *frame.routes("GET", "/settings", configures(show), "The settings of a repo"),
        *frame.routes("POST", "/settings/visibility", manages(visibility), "Make a repo public or private"),
        *frame.routes("POST", "/settings/gate", manages(gate), "Turn the gate of a repo on or off"),
        *frame.routes("POST", "/settings/discussions", configures(discussions), "Turn discussions of a repo on or off"),
        *frame.routes("POST", "/settings/move", move_endpoint, "Rename a repo or move it to another owner"),
    ]


def _deletion_routes(frame: RepoFrame) -> list[Route]:
    async def confirm(
        request: HubRequest, repo: Repo, errors: Mapping[str, str] = NO_ERRORS, typed: str = ""
    ) -> Response:
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
            return await confirm(request, repo, {"name": f"Type {repo.full_name}, as it is written here."}, typed)
        await deletion.delete(frame.repos, repo, actor_of(request))
        return frame.pages.redirect(f"/{repo.owner_name}", f"Deleted {repo.full_name}.")

    path, repos, manage = "/settings/delete", frame.repos, Action.REPO_MANAGE
    return [
        *frame.routes("GET", path, at_repo(repos, manage, confirm), "Confirm the deletion of a repo"),
        *frame.routes("POST", path, at_repo(repos, manage, delete), "Delete a repo"),
    ]
