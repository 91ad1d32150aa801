"""Redirects from former names of repos, in the settings of a user or an organization."""

from hubgate.server.access.caller import caller_of
from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.routes import KIB, Handler, Route
from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import redirects
from hubgate.server.hub.repos.model import Redirect
from hubgate.server.web.api.redirects import RedirectInfo, describe, owner_of
from hubgate.server.web.owner_routes import REDIRECTS, OwnerContext, render_settings_page
from hubgate.server.web.pages.listing import ListQuery, return_address
from hubgate.server.web.rendering import Pages

_UNLINK = "/{type}/{repo}/unlink"


def routes(pages: Pages, repos: Repos, accounts: Accounts) -> list[Route]:
    async def list_all(request: HubRequest, context: OwnerContext) -> Response:
        query, owner = ListQuery(request.query(), context.root), owner_of(context)
        page = await redirects.of_owner(repos, owner.id, query.page(redirects.CURSOR))

        def row(found: Redirect) -> tuple[Redirect, RedirectInfo]:
            return found, describe(owner.name, caller_of(request).identity, found)

        return render_settings_page(
            pages,
            request,
            context,
            "settings/redirects.html",
            namespace=owner.name,
            rows=[row(found) for found in page.items],
            **query.template_values(page.next_cursor),
        )

    async def unlink(request: HubRequest, context: OwnerContext) -> Response:
        owner, kind, name = owner_of(context), request.param("type"), request.param("repo")
        try:
            await redirects.unlink(repos, owner, kind, name, context.actor)
        except NotFound:
            return pages.redirect(return_address(request, context.root), "This redirect was already unlinked.")
        done = f"{owner.name}/{name.lower()} no longer redirects. The name is free for a new repo."
        return pages.redirect(return_address(request, context.root), done)

    def for_both_owners(method: str, path: str, handler: Handler[OwnerContext], summary: str) -> list[Route]:
        return [
            REDIRECTS.route(
                organizations, method, path, handler, Surface.PAGE, summary.format(whose), body_cap=16 * KIB
            )
            for organizations, whose in ((None, "your"), (accounts, "an organization's"))
        ]

    return [
        *for_both_owners("GET", "", list_all, "Redirects in {} namespace"),
        *for_both_owners("POST", _UNLINK, unlink, "Unlink one of {} redirects"),
    ]
