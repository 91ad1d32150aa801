"""One repo: its description at a commit, `PUT /settings`, and `/auth-check` for the caller's permissions."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of, caller_of
from hubgate.server.access.policy import decide
from hubgate.server.edge.routes import KIB, Check, Query, Route, Target
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import PlainTextResponse
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import trees
from hubgate.server.hub.git.threads import in_read_thread
from hubgate.server.hub.lfs import store as lfs_store
from hubgate.server.hub.repos import lookup, settings
from hubgate.server.hub.repos.model import Repo, RepoType
from hubgate.server.hub.repos.settings import SettingsChanges
from hubgate.server.spaces import management
from hubgate.server.spaces.context import Spaces
from hubgate.server.web.api.repos import queries, wire
from hubgate.server.web.api.repos.wire import Visibility, requested_privacy
from hubgate.server.web.api.spaces.wire import info_fields
from hubgate.server.web.repo_routes import (
    PULL_REQUEST_ONLY,
    api_routes,
    repo_endpoint,
    repo_endpoint_with_target,
    revision_headers,
)

_QUERY = (
    Query("blobs", "Also return the size and ids of every file.", {"type": "boolean"}),
    Query("expand", "Only these fields; may be repeated."),
)
_ANSWERS = {200: ("The repo.", dict[str, Any]), 404: ("Repo or revision not found.", None)}


class RepoSettings(msgspec.Struct, rename="camel"):
    """New settings of a repo. Unknown fields are accepted and ignored."""

    private: bool | None = None
    visibility: Visibility | None = None
    gated: Literal["auto", "manual", False] | None = None
    discussions_disabled: bool | None = None


class SavedRepoSettings(msgspec.Struct, rename="camel"):
    private: bool
    visibility: str
    gated: str | bool
    discussions_disabled: bool


def info_routes(repos: Repos, spaces: Spaces) -> list[Route]:
    async def at_head(request: HubRequest, repo: Repo) -> JsonResponse:
        return await answer(request, repo, repo.head_sha, {})

    async def at_revision(request: HubRequest, repo: Repo) -> JsonResponse:
        revision = await lookup.revision(repos, repo, request.param("rev"))
        return await answer(request, repo, revision.sha, revision_headers(revision))

    async def answer(request: HubRequest, repo: Repo, sha: str | None, headers: Mapping[str, str]) -> JsonResponse:
        fields = request.query_fields()
        expand = queries.all_values(fields, "expand")
        info = wire.describe(repo) | {"sha": sha}
        if repo.repo_type is RepoType.SPACE:
            info |= info_fields(repo, await management.state(spaces, repo), repos.base_url)
        if PULL_REQUEST_ONLY in headers:
            info["pullRequestOnly"] = True
        if sha is not None and (not expand or "siblings" in expand):
            folder = repos.folders.of(repo.id)
            if queries.flag(fields, "blobs"):
                # As in `/tree`, callers who may not read the content do not see the hashes of large files.
                may_read = decide(caller_of(request).identity, Action.REPO_READ_CONTENT, repo.as_resource()).allowed
                files = await trees.files(folder, sha)
                info["siblings"] = await in_read_thread(wire.siblings, files, hide_hashes=not may_read)
            else:
                info["siblings"] = await in_read_thread(wire.sibling_names, await trees.file_paths(folder, sha))
        elif not expand:
            info["siblings"] = []
        if not expand or "usedStorage" in expand:
            info["usedStorage"] = await lfs_store.used_storage(repos.db, repo.id)
        return JsonResponse(wire.select_fields(info, expand) if expand else info, headers=headers)

    see = Action.REPO_SEE
    return [
        *api_routes("GET", "", repo_endpoint(repos, see, at_head), "A repo", _ANSWERS, query=_QUERY),
        *api_routes(
            "GET",
            "/revision/{rev:path}",
            repo_endpoint(repos, see, at_revision),
            "A repo at a revision",
            _ANSWERS,
            query=_QUERY,
        ),
    ]


def settings_routes(repos: Repos) -> list[Route]:
    async def find_target(request: HubRequest, repo: Repo) -> Target[tuple[Repo, SettingsChanges]]:
        changes = _changes(repo, await request.read_json(RepoSettings))
        managing = ((Check(Action.REPO_MANAGE, repo.as_resource()),),) if changes.affects_access else ()
        return Target((repo, changes), repo.as_resource(), further_checks=managing)

    async def change(request: HubRequest, given: tuple[Repo, SettingsChanges]) -> JsonResponse:
        repo, changes = given
        after = await settings.configure(repos, repo, changes, actor_of(request))
        private, discussions_disabled = bool(after.private), bool(after.discussions_disabled)
        visibility = "private" if private else "public"
        return JsonResponse(SavedRepoSettings(private, visibility, after.gated or False, discussions_disabled))

    async def ok(_: HubRequest, __: Repo) -> PlainTextResponse:
        return PlainTextResponse("OK")

    read, write = Action.REPO_READ_CONTENT, Action.REPO_WRITE
    permitted: dict[int, Any] = {200: ("Permitted.", None)}
    return [
        *api_routes(
            "PUT",
            "/settings",
            repo_endpoint_with_target(repos, (Action.REPO_CONFIGURE, Action.REPO_MANAGE), find_target, change),
            "Change a repo's settings",
            {200: ("The new settings.", SavedRepoSettings)},
            body=RepoSettings,
            body_cap=16 * KIB,
        ),
        *api_routes(
            "GET", "/auth-check", repo_endpoint(repos, read, ok), "Whether you may read a repo's files", permitted
        ),
        *api_routes(
            "GET", "/auth-check/write", repo_endpoint(repos, write, ok), "Whether you may change a repo", permitted
        ),
    ]


def _changes(repo: Repo, body: RepoSettings) -> SettingsChanges:
    private = requested_privacy(repo.repo_type, body.private, body.visibility)
    gated = None if body.gated is None else body.gated or ""
    return SettingsChanges(private, gated, body.discussions_disabled)
