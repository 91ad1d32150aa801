"""`PUT /settings`, and `/auth-check`: whether a caller may read or write."""

from typing import Any, Literal

import msgspec
from starlette.responses import PlainTextResponse

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of
from hubgate.server.edge.routes import KIB, Check, Route, Target
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import settings
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.repos.settings import Changes
from hubgate.server.web.api.repos.visibility import Visibility, is_private
from hubgate.server.web.repo_routes import api_routes, at_repo, at_repo_needing


class RepoSettings(msgspec.Struct, rename="camel"):
    """Members that have no meaning here yet are taken and ignored."""

    private: bool | None = None
    visibility: Visibility | None = None
    gated: Literal["auto", "manual", False] | None = None
    discussions_disabled: bool | None = None


class RepoSettingsSet(msgspec.Struct, rename="camel"):
    private: bool
    visibility: str
    gated: str | bool
    discussions_disabled: bool


def routes(repos: Repos) -> list[Route]:
    async def needs(request: HubRequest, repo: Repo) -> Target[tuple[Repo, Changes]]:
        changes = _changes(repo, await request.read_json(RepoSettings))
        managing = ((Check(Action.REPO_MANAGE, repo.judged()),),) if changes.of_access else ()
        return Target((repo, changes), repo.judged(), also=managing)

    async def change(request: HubRequest, given: tuple[Repo, Changes]) -> JsonResponse:
        repo, changes = given
        after = await settings.configure(repos, repo, changes, actor_of(request))
        private, discussions = bool(after.private), bool(after.discussions_disabled)
        visibility = "private" if private else "public"
        return JsonResponse(RepoSettingsSet(private, visibility, after.gated or False, discussions))

    async def ok(_: HubRequest, __: Repo) -> PlainTextResponse:
        return PlainTextResponse("OK")

    read, write = Action.REPO_READ_CONTENT, Action.REPO_WRITE
    yes: dict[int, Any] = {200: ("You may.", None)}
    return [
        *api_routes(
            "PUT",
            "/settings",
            at_repo_needing(repos, (Action.REPO_CONFIGURE, Action.REPO_MANAGE), needs, change),
            "Change a repo's settings",
            {200: ("As they are now.", RepoSettingsSet)},
            body=RepoSettings,
            body_cap=16 * KIB,
        ),
        *api_routes("GET", "/auth-check", at_repo(repos, read, ok), "Whether you may read a repo's files", yes),
        *api_routes("GET", "/auth-check/write", at_repo(repos, write, ok), "Whether you may change a repo", yes),
    ]


def _changes(repo: Repo, body: RepoSettings) -> Changes:
    private = is_private(repo.kind, body.private, body.visibility)
    gated = None if body.gated is None else body.gated or ""
    return Changes(private, gated, body.discussions_disabled)
