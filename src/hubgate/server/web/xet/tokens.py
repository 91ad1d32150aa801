"""`/xet-write-token/{rev}` and `/xet-read-token/{rev}`: tokens for the storage API."""

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.storage_tokens import VALIDITY, StorageToken
from hubgate.server.clock import SECOND
from hubgate.server.edge.guard import Guard
from hubgate.server.edge.routes import Query, Route, Target
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import lookup
from hubgate.server.hub.repos.model import Repo
from hubgate.server.web.api.repos import destinations, queries
from hubgate.server.web.api.repos.destinations import Destination
from hubgate.server.web.repo_routes import api_routes, repo_endpoint, repo_endpoint_with_target

# Where the routes of `storage.py` are. Clients append /v1/… to it.
STORAGE_PATH = "/xet"
# Existing clients write this in place of a revision if the commit will create a pull request.
NO_REVISION = "None"


def with_older(path: str, oldest: str) -> tuple[str, str, str]:
    """A path of version 1, and what hf_xet called it up to 1.2.0, without a version, and up to 1.1.9."""
    return path, path.removeprefix("/v1"), oldest


class StorageAccess(msgspec.Struct, rename="camel"):
    """A token, the address of the storage API, and when the token expires, in seconds since 1970."""

    access_token: str
    cas_url: str
    exp: int


def routes(repos: Repos, guard: Guard) -> list[Route]:
    async def find_target(request: HubRequest, repo: Repo) -> Target[Destination]:
        as_pull_request = queries.flag(request.query_fields(), "create_pr")
        rev = request.param("rev")
        rev = "main" if as_pull_request and rev == NO_REVISION else rev
        return await destinations.find_target(repos, repo, rev, as_pull_request=as_pull_request)

    async def write_token(request: HubRequest, destination: Destination) -> JsonResponse:
        await destinations.ref_at(repos, destination)
        return issue(request, destination.repo, destination.rev, may_write=True, as_pr=destination.as_pull_request)

    async def read_token(request: HubRequest, repo: Repo) -> JsonResponse:
        rev = request.param("rev")
        await lookup.revision(repos, repo, rev)
        return issue(request, repo, rev, may_write=False, as_pr=False)

    def issue(request: HubRequest, repo: Repo, rev: str, *, may_write: bool, as_pr: bool) -> JsonResponse:
        expires_at = repos.clock() + VALIDITY
        token = StorageToken(repo.id, rev, may_write, as_pr, expires_at, guard.credential_of(request))
        access = StorageAccess(token.text(repos.secret), repos.base_url + STORAGE_PATH, expires_at // SECOND)
        # Some clients read the body, others the headers.
        headers = {
            "x-xet-access-token": access.access_token,
            "x-xet-cas-url": access.cas_url,
            "x-xet-token-expiration": str(access.exp),
            "cache-control": "no-store",
        }
        return JsonResponse(access, headers=headers)

    answers = {200: ("A token for the storage API.", StorageAccess)}
    return [
        *api_routes(
            "GET",
            "/xet-write-token/{rev:path}",
            repo_endpoint_with_target(repos, destinations.ACTIONS, find_target, write_token),
            "Get a token to upload large files of a repo as chunks",
            answers,
            query=(Query("create_pr", "The commit will create a pull request.", {"type": "boolean"}),),
        ),
        *api_routes(
            "GET",
            "/xet-read-token/{rev:path}",
            repo_endpoint(repos, Action.REPO_READ_CONTENT, read_token),
            "Get a token to download large files of a repo as chunks",
            answers,
        ),
    ]
