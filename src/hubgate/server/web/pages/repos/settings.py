"""`/settings` of a repo: visibility, gate, discussions, name and owner; and its deletion, which the user confirms by
typing the repo's name.
"""

from collections.abc import Mapping

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of, caller_of
from hubgate.server.access.policy import decide
from hubgate.server.edge.routes import Handler, Route, Target
from hubgate.server.errors import Conflict, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.hub.discussions import store as discussions
from hubgate.server.hub.git.trees import count_files
from hubgate.server.hub.repos import deletion, settings, transfer
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.repos.settings import SettingsChanges
from hubgate.server.web.pages.repos.page_context import RepoPageContext
from hubgate.server.web.rendering import NO_ERRORS
from hubgate.server.web.repo_routes import EndpointForType, repo_endpoint, repo_endpoint_with_target
from hubgate.server.web.repo_targets import RepoMove, move_target, namespace_choices_for_move

_MOVES = (Action.REPO_MANAGE, Action.REPO_CREATE, Action.REPO_LEAVE_REDIRECT)
GATES = (
    ("", "Open: everyone who can see the repo can read its files"),
    ("auto", "Gated: users who request access get it at once"),
    ("manual", "Gated: you decide on each request for access"),
)


# Beyond this many files the page says "more than".
MAX_COUNTED = 10_000


def routes(base: RepoPageContext) -> list[Route]:
    return [*_setting_routes(base), *_deletion_routes(base)]


def _setting_routes(base: RepoPageContext) -> list[Route]:
    def render(request: HubRequest, repo: Repo, errors: Mapping[str, str] = NO_ERRORS, **given: str) -> Response:
        return base.show(
            request,
            repo,
            "settings.html",
            "settings",
            errors,
            gates=GATES,
            owners=namespace_choices_for_move(caller_of(request).signed_in_person, repo),
            may_manage=base.may(request, repo, Action.REPO_MANAGE),
            may_redirect=decide(caller_of(request).identity, Action.REPO_LEAVE_REDIRECT, repo.owner.namespace).allowed,
            given={"owner": repo.owner_name, "name": repo.name, "leave_redirect": "on", **given},
        )

    async def show(request: HubRequest, repo: Repo) -> Response:
        return render(request, repo)

    async def configure(request: HubRequest, repo: Repo, changes: SettingsChanges, done: str) -> Response:
        await settings.configure(base.repos, repo, changes, actor_of(request))
        return base.pages.redirect(f"{repo.path}/settings", done)

    async def visibility(request: HubRequest, repo: Repo) -> Response:
        given = request.form_fields.get("visibility")
        if given not in ("public", "private"):
            raise Unprocessable("visibility must be public or private.")
        return await configure(
            request, repo, SettingsChanges(private=given == "private"), f"{repo.full_name} is now {given}."
        )

    async def gate(request: HubRequest, repo: Repo) -> Response:
        given = request.form_fields.get("gated")
        state = "is now gated" if given else "is no longer gated"
        return await configure(request, repo, SettingsChanges(gated=given), f"{repo.full_name} {state}.")

    async def discussions(request: HubRequest, repo: Repo) -> Response:
        disabled = request.form_fields.get("discussions") != "on"
        state = "off" if disabled else "on"
        return await configure(
            request, repo, SettingsChanges(discussions_disabled=disabled), f"Discussions are now {state}."
        )

    async def repo_to_move(request: HubRequest, repo: Repo) -> Target[RepoMove]:
        form = request.form_fields
        owner, name, leave = form.get("owner") or repo.owner_name, form.get("name").strip(), form.get("leave_redirect")
        identity = caller_of(request).identity
        return await move_target(base.repos, identity, repo, owner, name, leave_redirect=leave == "on")

    async def move(request: HubRequest, requested: RepoMove) -> Response:
        repo, owner, to, name = requested.repo, requested.new_owner, requested.namespace, requested.name
        if (owner.id, name) == (repo.owner_id, repo.name):
            return base.pages.redirect(f"{repo.path}/settings", f"The repo is already named {repo.full_name}.")
        try:
            moved = await transfer.move(
                base.repos, repo, owner, name, actor_of(request), leave_redirect=requested.leave_redirect
            )
        except (Conflict, Unprocessable) as error:
            message = error.message if isinstance(error, Unprocessable) else f"{owner.name}/{name} is taken."
            ticked = request.form_fields.get("leave_redirect")
            return render(request, repo, {"name": message}, owner=to, name=name, leave_redirect=ticked)
        redirect_note = "redirect here" if requested.redirects else "no longer work"
        return base.pages.redirect(
            f"{moved.path}/settings", f"Moved to {moved.full_name}. Links to {repo.full_name} {redirect_note}."
        )

    def manage_endpoint(handler: Handler[Repo]) -> EndpointForType:
        return repo_endpoint(base.repos, Action.REPO_MANAGE, handler)

    def configure_endpoint(handler: Handler[Repo]) -> EndpointForType:
        return repo_endpoint(base.repos, Action.REPO_CONFIGURE, handler)

    move_endpoint = repo_endpoint_with_target(base.repos, _MOVES, repo_to_move, move)
    return [
        *base.routes("GET", "/settings", configure_endpoint(show), "The settings of a repo"),
        *base.routes("POST", "/settings/visibility", manage_endpoint(visibility), "Make a repo public or private"),
        *base.routes("POST", "/settings/gate", manage_endpoint(gate), "Turn the gate of a repo on or off"),
        *base.routes(
            "POST", "/settings/discussions", configure_endpoint(discussions), "Turn discussions of a repo on or off"
        ),
        *base.routes("POST", "/settings/move", move_endpoint, "Rename a repo or move it to another owner"),
    ]


def _deletion_routes(base: RepoPageContext) -> list[Route]:
    async def confirm(
        request: HubRequest, repo: Repo, errors: Mapping[str, str] = NO_ERRORS, typed: str = ""
    ) -> Response:
        folder, repos = base.repos.folders.of(repo.id), base.repos
        files = await count_files(folder, repo.head_sha, MAX_COUNTED + 1) if repo.head_sha else 0
        return base.show(
            request,
            repo,
            "delete.html",
            "settings",
            errors,
            files=files,
            max_counted=MAX_COUNTED,
            discussions=await discussions.count(repos.db, repo.id),
            typed=typed,
        )

    async def delete(request: HubRequest, repo: Repo) -> Response:
        typed = request.form_fields.get("name").strip()
        if typed != repo.full_name:
            return await confirm(request, repo, {"name": f"Type {repo.full_name}, exactly as shown here."}, typed)
        await deletion.delete(base.repos, repo, actor_of(request))
        return base.pages.redirect(f"/{repo.owner_name}", f"Deleted {repo.full_name}.")

    path, repos, manage = "/settings/delete", base.repos, Action.REPO_MANAGE
    return [
        *base.routes("GET", path, repo_endpoint(repos, manage, confirm), "Confirm the deletion of a repo"),
        *base.routes("POST", path, repo_endpoint(repos, manage, delete), "Delete a repo"),
    ]
