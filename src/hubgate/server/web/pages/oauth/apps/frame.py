"""What the pages share: they stand in the settings of a user or of an organization, at both addresses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.routes import KIB, Route
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.apps import owning
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.web.app_owner import Desk, OfOwner, organizations_route, own_route
from hubgate.server.web.rendering import NO_ERRORS, Pages

ONE = "/{client_id}"
_CAP = 256 * KIB


@dataclass(frozen=True)
class Frame:
    pages: Pages
    oauth: OAuth
    accounts: Accounts

    def routes(self, method: str, path: str, handler: OfOwner, summary: str) -> list[Route]:
        own = own_route(method, path, handler, Surface.PAGE, summary, body_cap=_CAP)
        return [own, self.organizations_route(method, path, handler, summary)]

    def organizations_route(self, method: str, path: str, handler: OfOwner, summary: str) -> Route:
        summary = f"{summary} (an organization's)"
        return organizations_route(self.accounts, method, path, handler, Surface.PAGE, summary, body_cap=_CAP)

    def show(
        self,
        request: HubRequest,
        desk: Desk,
        template: str,
        errors: Mapping[str, str] = NO_ERRORS,
        **values: Any,
    ) -> Response:
        return self.pages.page(
            request,
            f"apps/{template}",
            errors=errors,
            frame="organization/base.html" if desk.organization else "settings/base.html",
            section=desk.root,
            root=desk.root,
            organization=desk.organization,
            **values,
        )

    async def app(self, request: HubRequest, desk: Desk) -> App:
        return await owning.get(self.oauth, desk.owner, request.param("client_id"))
