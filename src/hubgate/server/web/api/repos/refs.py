"""Branches, tags and squashing: `/refs`, `/branch/{branch}`, `/tag/{rev}`, `/super-squash/{rev}`."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.edge.routes import KIB, Query, Route
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.threads import in_read_thread
from hubgate.server.hub.repos import branches
from hubgate.server.hub.repos.model import PULL_REQUESTS, Repo
from hubgate.server.web.api.repos import queries, wire
from hubgate.server.web.repo_routes import api_routes, repo_endpoint

LONGEST_MESSAGE = 10_000


class NewBranch(msgspec.Struct, rename="camel"):
    starting_point: str | None = None
    empty_branch: bool = False
    overwrite: bool = False


class NewTag(msgspec.Struct):
    tag: str
    message: Annotated[str, msgspec.Meta(max_length=LONGEST_MESSAGE)] | None = None


class Squash(msgspec.Struct):
    message: Annotated[str, msgspec.Meta(max_length=LONGEST_MESSAGE)] = "Super-squash history"


def routes(repos: Repos) -> list[Route]:
    async def list_all(request: HubRequest, repo: Repo) -> JsonResponse:
        with_prs = queries.flag(request.query_fields(), "include_prs")
        return JsonResponse(await in_read_thread(_by_kind, await branches.list_refs(repos, repo), with_prs=with_prs))

    async def create_branch(request: HubRequest, repo: Repo) -> JsonResponse:
        body = await request.read_json(NewBranch) if await request.body() else NewBranch()
        await branches.create_branch(
            repos,
            repo,
            caller_of(request).user,
            request.param("branch"),
            body.starting_point,
            empty=body.empty_branch,
            overwrite=body.overwrite,
        )
        return JsonResponse({})

    async def delete_branch(request: HubRequest, repo: Repo) -> JsonResponse:
        await branches.delete_branch(repos, repo, request.param("branch"))
        return JsonResponse({})

    async def create_tag(request: HubRequest, repo: Repo) -> JsonResponse:
        body, user = await request.read_json(NewTag), caller_of(request).user
        await branches.create_tag(repos, repo, user, body.tag, request.param("rev"), body.message or "")
        return JsonResponse({})

    async def delete_tag(request: HubRequest, repo: Repo) -> JsonResponse:
        await branches.delete_tag(repos, repo, request.param("rev"))
        return JsonResponse({})

    async def squash(request: HubRequest, repo: Repo) -> JsonResponse:
        body = await request.read_json(Squash) if await request.body() else Squash()
        await branches.squash(repos, repo, caller_of(request).user, request.param("rev"), body.message)
        return JsonResponse({})

    write, done = Action.REPO_WRITE, {200: ("Done.", dict[str, Any]), 409: ("The name is taken.", None)}
    deleted = {**done, 409: ("The ref was changed by another request.", None)}
    query = (Query("include_prs", "Also return pull requests.", {"type": "boolean"}),)
    listing = {200: ("Branches and tags with their commits.", dict[str, Any])}
    branch, tag, cap = "/branch/{branch:path}", "/tag/{rev:path}", 64 * KIB
    return [
        *api_routes(
            "GET",
            "/refs",
            repo_endpoint(repos, Action.REPO_SEE, list_all),
            "List the branches and tags of a repo",
            listing,
            query=query,
        ),
        *api_routes(
            "POST",
            branch,
            repo_endpoint(repos, write, create_branch),
            "Create a branch in a repo",
            done,
            body=NewBranch,
            body_cap=cap,
        ),
        *api_routes("DELETE", branch, repo_endpoint(repos, write, delete_branch), "Delete a branch of a repo", deleted),
        *api_routes(
            "POST",
            tag,
            repo_endpoint(repos, write, create_tag),
            "Create a tag in a repo",
            done,
            body=NewTag,
            body_cap=cap,
        ),
        *api_routes("DELETE", tag, repo_endpoint(repos, write, delete_tag), "Delete a tag of a repo", deleted),
        *api_routes(
            "POST",
            "/super-squash/{rev:path}",
            repo_endpoint(repos, write, squash),
            "Squash a repo's branch or open pull request into one commit",
            done,
            body=Squash,
            body_cap=cap,
        ),
    ]


_KINDS = {
    "refs/heads/": "branches",
    "refs/convert/": "converts",
    "refs/tags/": "tags",
    PULL_REQUESTS: "pullRequests",
}


def _by_kind(pairs: list[tuple[str, str]], *, with_prs: bool) -> dict[str, msgspec.Raw]:
    """Group refs by kind. There may be tens of thousands: do not call on the event loop."""
    kinds = {prefix: kind for prefix, kind in _KINDS.items() if with_prs or kind != "pullRequests"}
    return {kind: wire.encode_array(_of_kind(pairs, prefix)) for prefix, kind in kinds.items()}


def _of_kind(pairs: list[tuple[str, str]], prefix: str) -> Iterator[dict[str, str]]:
    for name, sha in pairs:
        if name.startswith(prefix):
            yield {"name": name.removeprefix(prefix), "ref": name, "targetCommit": sha}
