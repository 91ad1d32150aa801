"""`/api/settings/repositories`, and the same for an organization: repos of every type, with the storage they use.

Every signed-in caller may list the repos of any organization; the response contains those that the caller may see.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, caller_of
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization
from hubgate.server.clock import iso
from hubgate.server.edge.routes import Endpoint, Route, own
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.listing import listing
from hubgate.server.hub.listing.listing import StorageUsage
from hubgate.server.hub.listing.store import RepoFilter
from hubgate.server.hub.repos.model import Repo
from hubgate.server.paging import parse_page
from hubgate.server.web.account_paths import organization_locator
from hubgate.server.web.api.answers import NO_TOKEN
from hubgate.server.web.api.listing import PAGING, page_response

_Answers = Mapping[int, tuple[str, Any]]
_ORGANIZATION_ANSWERS: _Answers = {
    307: ("The organization was renamed; Location has the new address.", None),
    404: ("Organization not found.", None),
}
_OF_CALLER = "/api/settings/repositories"
_OF_ORGANIZATION = "/api/organizations/{name}/settings/repositories"


class OwnedRepo(msgspec.Struct, rename="camel"):
    id: str
    type: str
    updated_at: str
    visibility: str
    # Bytes of the repo's large files.
    storage: int
    # Share of the storage of all repos of this owner that the caller may see.
    storage_percent: float


def routes(repos: Repos, accounts: Accounts) -> list[Route]:
    async def of_caller(request: HubRequest, caller: Caller) -> JsonResponse:
        return await of_owner(request, caller.user.id)

    async def of_organization(request: HubRequest, found: Organization) -> JsonResponse:
        return await of_owner(request, found.id)

    async def of_owner(request: HubRequest, owner_id: str) -> JsonResponse:
        page_request = parse_page(request.query(), listing.CURSOR)
        identity = caller_of(request).identity
        page = await listing.list_repos(repos, identity, RepoFilter(owner_id=owner_id), page_request)
        storage = await listing.storage_usage(repos, identity, owner_id, page.items)
        return page_response(request, repos.base_url, page, lambda repo: _describe(repo, storage))

    action = Action.REPO_LIST_OWNED
    organization_endpoint = Endpoint(
        action, organization_locator(accounts, _OF_ORGANIZATION, Surface.API), of_organization
    )
    return [
        _route(_OF_CALLER, own(action, of_caller), "Your repos", {}),
        _route(_OF_ORGANIZATION, organization_endpoint, "Repos of an organization", _ORGANIZATION_ANSWERS),
    ]


def _route(path: str, endpoint: Endpoint, summary: str, more: _Answers) -> Route:
    return Route(
        "GET",
        path,
        endpoint,
        Surface.API,
        f"{summary} that you may see, of every type, with the storage they use",
        query=PAGING,
        answers={200: ("One page, most recently changed first.", list[OwnedRepo]), **NO_TOKEN, **more},
    )


def _describe(repo: Repo, storage: StorageUsage) -> OwnedRepo:
    visibility = "private" if repo.private else "public"
    return OwnedRepo(
        repo.full_name, repo.type, iso(repo.updated_at), visibility, storage.of(repo), storage.percent_of(repo)
    )
