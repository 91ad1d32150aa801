"""`/api/settings/repositories`, and the same for an organization: its repos of every type, with what they take up."""

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, caller_of
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization
from hubgate.server.clock import iso
from hubgate.server.edge.endpoint import Endpoint, own
from hubgate.server.edge.routes import Route
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.lfs import store as lfs_store
from hubgate.server.hub.listing import listing
from hubgate.server.hub.listing.store import Wanted
from hubgate.server.hub.repos.model import Repo
from hubgate.server.paging import parse_page
from hubgate.server.web.api.answers import NO_TOKEN
from hubgate.server.web.api.listing import PAGING, listed
from hubgate.server.web.named import organization

_MINE = "/api/settings/repositories"
_ITS = "/api/organizations/{name}/settings/repositories"


class OwnedRepo(msgspec.Struct, rename="camel"):
    id: str
    type: str
    updated_at: str
    visibility: str
    # The bytes of its large files.
    storage: int


def routes(repos: Repos, accounts: Accounts) -> list[Route]:
    async def mine(request: HubRequest, caller: Caller) -> JsonResponse:
        return await of_owner(request, caller.user.id)

    async def its(request: HubRequest, found: Organization) -> JsonResponse:
        return await of_owner(request, found.id)

    async def of_owner(request: HubRequest, owner_id: str) -> JsonResponse:
        asked = parse_page(request.query(), listing.CURSOR)
        page = await listing.listed(repos, caller_of(request).identity, Wanted(owner_id=owner_id), asked)
        ids = [repo.id for repo in page.items]
        sizes = await repos.db.read_long(lambda tx: lfs_store.used_storage_of(tx, ids))
        return listed(request, repos.base_url, page, lambda repo: _described(repo, sizes.get(repo.id, 0)))

    members = organization(accounts, _ITS, Surface.API)
    return [
        _route(_MINE, own(Action.REPO_LIST_OWNED, mine), "Your repos"),
        _route(_ITS, Endpoint(Action.REPO_LIST_OWNED, members, its), "Repos of an organization, for its members"),
    ]


def _route(path: str, endpoint: Endpoint, summary: str) -> Route:
    return Route(
        "GET",
        path,
        endpoint,
        Surface.API,
        f"{summary}, of every type, with what they take up",
        query=PAGING,
        answers={200: ("One page.", list[OwnedRepo]), **NO_TOKEN, 403: ("You are not a member.", None)},
    )


def _described(repo: Repo, storage: int) -> OwnedRepo:
    visibility = "private" if repo.private else "public"
    return OwnedRepo(repo.full_name, repo.type, iso(repo.updated_at), visibility, storage)
