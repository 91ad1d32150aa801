"""`/api/settings/redirects`: redirects from former names of repos, also under `/api/organizations/{name}`."""

from functools import partial
from typing import Any

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.accounts.context import Accounts
from hubgate.server.clock import iso_or_none
from hubgate.server.edge.routes import Handler, Route
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import redirects
from hubgate.server.hub.repos.model import Redirect, RepoOwner
from hubgate.server.paging import parse_page
from hubgate.server.web.api import listing
from hubgate.server.web.api.answers import NO_TOKEN
from hubgate.server.web.owner_routes import REDIRECTS, OwnerContext

_REFUSALS = {
    **NO_TOKEN,
    403: ("The token is read-only or belongs to an app, or you are not an admin of the organization.", None),
}


class RedirectInfo(msgspec.Struct, rename="camel"):
    type: str
    name: str
    # Null if the target is hidden from the caller.
    target: str | None
    # Whether the target is in another namespace.
    outside: bool
    # When the repo was renamed or moved; null for redirects from before this was recorded.
    created_at: str | None
    # The user who allowed a redirect to another namespace; null if unknown or not needed.
    allowed_by: str | None


def owner_of(context: OwnerContext) -> RepoOwner:
    """Return the owner of the settings, a user or an organization, as a RepoOwner."""
    if context.organization:
        return RepoOwner("org", context.organization.id, context.organization.name)
    return RepoOwner("user", context.user.id, context.user.name)


def describe(namespace: str, identity: Identity, found: Redirect) -> RedirectInfo:
    """Describe a redirect; a target that the caller may not see is hidden."""
    may_see = decide(identity, Action.REPO_SEE, found.repo.as_resource()).allowed
    return RedirectInfo(
        type=found.type,
        name=f"{namespace}/{found.key}",
        target=found.repo.full_name if may_see else None,
        outside=found.leads_to_other_namespace,
        created_at=iso_or_none(found.left_at),
        allowed_by=found.allowed_by if found.leads_to_other_namespace else None,
    )


def routes(repos: Repos, accounts: Accounts) -> list[Route]:
    async def list_all(request: HubRequest, context: OwnerContext) -> Response:
        owner = owner_of(context)
        page = await redirects.of_owner(repos, owner.id, parse_page(request.query(), redirects.CURSOR))
        render = partial(describe, owner.name, caller_of(request).identity)
        return listing.page_response(request, repos.base_url, page, render)

    async def unlink(request: HubRequest, context: OwnerContext) -> Response:
        await redirects.unlink(repos, owner_of(context), request.param("type"), request.param("repo"), context.actor)
        return Response(status_code=204)

    def for_both_owners(
        method: str, path: str, handler: Handler[OwnerContext], summary: str, **more: Any
    ) -> list[Route]:
        return [
            REDIRECTS.route(organizations, method, path, handler, Surface.API, summary.format(whose), **more)
            for organizations, whose in ((None, "your"), (accounts, "an organization's"))
        ]

    shown = {200: ("By name.", list[RedirectInfo]), **_REFUSALS}
    unlinked = {204: ("The name no longer redirects and is free for a new repo.", None), **_REFUSALS}
    return [
        *for_both_owners("GET", "", list_all, "Redirects in {} namespace", query=listing.PAGING, answers=shown),
        *for_both_owners(
            "DELETE",
            "/{type}/{repo}",
            unlink,
            "Unlink one of {} redirects",
            answers={**unlinked, 404: ("Redirect not found.", None)},
        ),
    ]
