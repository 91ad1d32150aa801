"""Requests to the operator: for token exchange, for an organization's app, and for an operator-defined scope."""

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.responses import Response

from hubgate.server.edge.routes import Route
from hubgate.server.errors import FieldErrors, HubError, TooManyRequests
from hubgate.server.http.request import HubRequest
from hubgate.server.oauth.requests import submission
from hubgate.server.oauth.requests.model import EXCHANGE
from hubgate.server.web.owner_routes import OwnerContext
from hubgate.server.web.pages.oauth.apps.frame import ONE, Frame
from hubgate.server.web.rendering import NO_ERRORS

_EXCHANGE, _SCOPE = f"{ONE}/ask/{EXCHANGE}", f"{ONE}/ask/scope"


def routes(frame: Frame) -> list[Route]:
    exchange, scope = _RequestForm(frame, "exchange"), _RequestForm(frame, "scope")
    return [
        frame.organization_route("GET", _EXCHANGE, exchange.begin, "The form that asks for token exchange"),
        frame.organization_route("POST", _EXCHANGE, exchange.ask, "Ask for token exchange"),
        *frame.routes("GET", _SCOPE, scope.begin, "The form that asks for a scope"),
        *frame.routes("POST", _SCOPE, scope.ask, "Ask for a scope"),
    ]


@dataclass(frozen=True)
class _RequestForm:
    frame: Frame
    what: str

    async def begin(self, request: HubRequest, context: OwnerContext) -> Response:
        return await self._show(request, context)

    async def ask(self, request: HubRequest, context: OwnerContext) -> Response:
        app, form = await self.frame.app(request, context), request.form_fields
        wanted = EXCHANGE if self.what == "exchange" else form.get("wanted").strip()
        reason = form.get("reason")
        try:
            await submission.submit(self.frame.oauth, app, wanted, reason, context.user)
        except (FieldErrors, TooManyRequests) as error:
            return await self._show(request, context, error, wanted=wanted, reason=reason)
        return self.frame.pages.redirect(
            context.at(app.client_id), "Requested. You get a mail when the operator has decided."
        )

    async def _show(
        self, request: HubRequest, context: OwnerContext, error: HubError | None = None, **given: str
    ) -> Response:
        app = await self.frame.app(request, context)
        offered = [scope for scope in self.frame.oauth.extra_scopes if scope.name not in app.extra_scopes]
        errors: Mapping[str, str] = NO_ERRORS
        if error is not None:
            errors = error.fields if isinstance(error, FieldErrors) else {"reason": error.message}
        response = self.frame.show(
            request,
            context,
            f"ask_{self.what}.html",
            errors,
            app=app,
            at=context.at(app.client_id),
            offered=offered,
            **{"wanted": offered[0].name if len(offered) == 1 else "", "reason": "", **given},
        )
        if isinstance(error, TooManyRequests):
            response.status_code = error.status
            response.headers["retry-after"] = str(error.retry_after)
        return response
