"""Requests to the operator: for token exchange (apps of organizations), and for an operator-defined scope."""

from collections.abc import Mapping

from msgspec import Struct

from hubgate.server.edge.routes import Route
from hubgate.server.errors import FieldErrors, HubError, TooManyRequests
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.oauth.operator_requests import submission
from hubgate.server.oauth.operator_requests.model import EXCHANGE
from hubgate.server.web.owner_routes import OwnerContext
from hubgate.server.web.pages.oauth.apps.page_context import ONE, AppPageContext
from hubgate.server.web.rendering import NO_ERRORS

_EXCHANGE, _SCOPE = f"{ONE}/ask/{EXCHANGE}", f"{ONE}/ask/scope"


def routes(base: AppPageContext) -> list[Route]:
    exchange, scope = _RequestForm(base, "exchange"), _RequestForm(base, "scope")
    return [
        base.organization_route("GET", _EXCHANGE, exchange.show_form, "The form that requests token exchange"),
        base.organization_route("POST", _EXCHANGE, exchange.submit, "Request token exchange"),
        *base.routes("GET", _SCOPE, scope.show_form, "The form that requests a scope"),
        *base.routes("POST", _SCOPE, scope.submit, "Request a scope"),
    ]


class _RequestForm(Struct, frozen=True):
    base: AppPageContext
    subject: str

    async def show_form(self, request: HubRequest, context: OwnerContext) -> Response:
        return await self._show(request, context)

    async def submit(self, request: HubRequest, context: OwnerContext) -> Response:
        app, form = await self.base.app(request, context), request.form_fields
        requested = EXCHANGE if self.subject == "exchange" else form.get("wanted").strip()
        reason = form.get("reason")
        try:
            await submission.submit(self.base.oauth, app, requested, reason, context.user, context.actor)
        except (FieldErrors, TooManyRequests) as error:
            return await self._show(request, context, error, requested=requested, reason=reason)
        return self.base.pages.redirect(
            context.address_of(app.client_id), "Requested. You will get an e-mail when the operator decides."
        )

    async def _show(
        self, request: HubRequest, context: OwnerContext, error: HubError | None = None, **given: str
    ) -> Response:
        app = await self.base.app(request, context)
        available = [scope for scope in self.base.oauth.extra_scopes if scope.name not in app.extra_scopes]
        errors: Mapping[str, str] = NO_ERRORS
        if error is not None:
            errors = error.fields if isinstance(error, FieldErrors) else {"reason": error.message}
        response = self.base.show(
            request,
            context,
            f"ask_{self.subject}.html",
            errors,
            app=app,
            at=context.address_of(app.client_id),
            available=available,
            **{"requested": available[0].name if len(available) == 1 else "", "reason": "", **given},
        )
        if isinstance(error, TooManyRequests):
            response.status_code = error.status
            response.headers["retry-after"] = str(error.retry_after)
        return response
