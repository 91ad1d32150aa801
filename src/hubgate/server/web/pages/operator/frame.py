"""What all pages of the operator share: access, and the navigation with the number of waiting requests."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.edge.routes import KIB, THE_HUB, Endpoint, PublicHandler, Route, without_subject
from hubgate.server.errors import FieldErrors, HubError, TooManyRequests
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.operator_requests import decision
from hubgate.server.web.rendering import NO_ERRORS, Pages

OVERVIEW = "/operator"


class OperatorPages(Struct, frozen=True):
    pages: Pages
    oauth: OAuth

    async def page(
        self,
        request: HubRequest,
        template: str,
        section: str,
        errors: Mapping[str, str] = NO_ERRORS,
        status: int | None = None,
        **values: Any,
    ) -> Response:
        """A page whose address in the navigation is `section`."""
        waiting = await decision.count_pending(self.oauth)
        return self.pages.page(
            request, f"operator/{template}", status, errors, section=section, waiting_requests=waiting, **values
        )

    async def show_errors(
        self, request: HubRequest, template: str, section: str, error: HubError, at: str, **values: Any
    ) -> Response:
        """The page again with its errors: at their fields, or at the field `at` if the error names no field."""
        errors = error.fields if isinstance(error, FieldErrors) else {at: error.message}
        response = await self.page(request, template, section, errors, error.status, **values)
        if isinstance(error, TooManyRequests):
            response.headers["retry-after"] = str(error.retry_after)
        return response


def operator_route(method: str, path: str, handler: PublicHandler, summary: str) -> Route:
    """A route that only operators may use."""
    endpoint = Endpoint(Action.OPERATOR_USE, THE_HUB, without_subject(handler))
    return Route(method, path, endpoint, Surface.PAGE, summary, body_cap=16 * KIB)
