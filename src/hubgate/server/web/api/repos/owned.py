"""`/api/settings/repositories`, and the same for an organization: its repos of every type, with what they take up."""

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization
from hubgate.server.clock import iso
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.routes import Handler, Route
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.lfs import store as lfs_store
from hubgate.server.hub.listing import listing
from hubgate.server.hub.listing.store import Wanted
from hubgate.server.hub.repos.model import Repo
from hubgate.server.paging import parse_page
from hubgate.server.web.api.listing import PAGING, listed
from hubgate.server.web.named import at_organization

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
    async def mine(request: HubRequest) -> JsonResponse:
        return await of_owner(request, caller_of(request).user.id)

    async def its(request: HubRequest, organization: Organization) -> JsonResponse:
        return await of_owner(request, organization.id)

    async def of_owner(request: HubRequest, owner_id: str) -> JsonResponse:
        asked = parse_page(request.query(), listing.CURSOR)
        page = await listing.listed(repos, caller_of(request).identity, Wanted(owner_id=owner_id), asked)
        ids = [repo.id for repo in page.items]
        sizes = await repos.db.read_long(lambda tx: lfs_store.used_storage_of(tx, ids))
        return listed(request, repos.base_url, page, lambda repo: _described(repo, sizes.get(repo.id, 0)))

    return [
        _route(_MINE, mine, "Your repos"),
        _route(_ITS, at_organization(accounts, _ITS, Surface.API, its), "Repos of an organization"),
    ]


def _route(path: str, handler: Handler, summary: str) -> Route:
    return Route(
        "GET",
        path,
        handler,
        Surface.API,
        # Asked of each repo on the list (access/sight.py).
        Action.REPO_SEE.rule.name,
        f"{summary}, of every type, with what they take up",
        query=PAGING,
        answers={200: ("One page.", list[OwnedRepo]), 401: ("There is no token, or it is no longer good.", None)},
    )


def _described(repo: Repo, storage: int) -> OwnedRepo:
    visibility = "private" if repo.private else "public"
    return OwnedRepo(repo.full_name, repo.type, iso(repo.updated_at), visibility, storage)
