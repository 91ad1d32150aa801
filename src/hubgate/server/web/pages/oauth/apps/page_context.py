"""Shared parts of the pages about apps: routes in the settings of users and organizations, and rendering."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.routes import KIB, Handler, Route
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.apps import management
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.web.owner_routes import APPLICATIONS, OwnerContext, render_settings_page
from hubgate.server.web.rendering import NO_ERRORS, Pages

ONE = "/{client_id}"
_CAP = 256 * KIB
# Read-only pages; all others are forms, and viewing them requires write permission.
_VIEWS = ("", ONE, f"{ONE}/exchange", f"{ONE}/exchange/members/{{user}}")


class AppPageContext(Struct, frozen=True):
    pages: Pages
    oauth: OAuth
    accounts: Accounts

    def routes(self, method: str, path: str, handler: Handler[OwnerContext], summary: str, **more: Any) -> list[Route]:
        return [
            self._route(None, method, path, handler, summary, **more),
            self.organization_route(method, path, handler, summary, **more),
        ]

    def organization_route(
        self, method: str, path: str, handler: Handler[OwnerContext], summary: str, **more: Any
    ) -> Route:
        return self._route(self.accounts, method, path, handler, f"{summary} (an organization's)", **more)

    def _route(
        self,
        accounts: Accounts | None,
        method: str,
        path: str,
        handler: Handler[OwnerContext],
        summary: str,
        **more: Any,
    ) -> Route:
        more = {"form": path not in _VIEWS, "body_cap": _CAP, **more}
        return APPLICATIONS.route(accounts, method, path, handler, Surface.PAGE, summary, **more)

    def show(
        self,
        request: HubRequest,
        context: OwnerContext,
        template: str,
        errors: Mapping[str, str] = NO_ERRORS,
        **values: Any,
    ) -> Response:
        return render_settings_page(self.pages, request, context, f"apps/{template}", errors, **values)

    async def app(self, request: HubRequest, context: OwnerContext) -> App:
        return await management.get(self.oauth, context.owner, request.param("client_id"))
