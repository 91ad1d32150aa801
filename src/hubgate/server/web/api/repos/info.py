"""`GET /api/{type}s/{id}` and `/revision/{rev}`: a repo at a commit."""

from collections.abc import Mapping
from typing import Any

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.policy import decide
from hubgate.server.edge.routes import Query, Route
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import trees
from hubgate.server.hub.git.threads import in_read_thread
from hubgate.server.hub.lfs import store as lfs_store
from hubgate.server.hub.repos import lookup
from hubgate.server.hub.repos.model import Repo
from hubgate.server.web.api.repos import queries, wire
from hubgate.server.web.repo_routes import IN_PULL_REQUEST, api_routes, at_repo, headers_of

_QUERY = (
    Query("blobs", "Also size and ids of every file.", {"type": "boolean"}),
    Query("expand", "Only these members; may be repeated."),
)
_ANSWERS = {200: ("The repo.", dict[str, Any]), 404: ("There is no such repo or revision.", None)}


def routes(repos: Repos) -> list[Route]:
    async def at_head(request: HubRequest, repo: Repo) -> JsonResponse:
        return await answer(request, repo, repo.head_sha, {})

    async def at_revision(request: HubRequest, repo: Repo) -> JsonResponse:
        revision = await lookup.revision(repos, repo, request.param("rev"))
        return await answer(request, repo, revision.sha, headers_of(revision))

    async def answer(request: HubRequest, repo: Repo, sha: str | None, headers: Mapping[str, str]) -> JsonResponse:
        fields = request.query_fields()
        expand = queries.every(fields, "expand")
        info = wire.described(repo) | {"sha": sha}
        if IN_PULL_REQUEST in headers:
            info["pullRequestOnly"] = True
        if sha is not None and (not expand or "siblings" in expand):
            folder = repos.folders.of(repo.id)
            if queries.flag(fields, "blobs"):
                # As in `/tree`: for a gated repo, the hash of a large file would give access to it elsewhere.
                may_read = decide(caller_of(request).identity, Action.REPO_READ_CONTENT, repo.judged()).allowed
                files = await trees.files(folder, sha)
                info["siblings"] = await in_read_thread(wire.siblings, files, hide_hashes=not may_read)
            else:
                info["siblings"] = await in_read_thread(wire.names, await trees.file_names(folder, sha))
        elif not expand:
            info["siblings"] = []
        if not expand or "usedStorage" in expand:
            info["usedStorage"] = await lfs_store.used_storage(repos.db, repo.id)
        return JsonResponse(wire.only(info, expand) if expand else info, headers=headers)

    see = Action.REPO_SEE
    return [
        *api_routes("GET", "", at_repo(repos, see, at_head), "A repo", _ANSWERS, query=_QUERY),
        *api_routes(
            "GET",
            "/revision/{rev:path}",
            at_repo(repos, see, at_revision),
            "A repo at a revision",
            _ANSWERS,
            query=_QUERY,
        ),
    ]
