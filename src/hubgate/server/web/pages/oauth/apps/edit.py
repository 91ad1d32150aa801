"""One app: its settings, its users, its rejected requests."""

from collections.abc import Mapping

from starlette.responses import Response

from hubgate.server.edge.routes import Route
from hubgate.server.errors import FieldErrors
from hubgate.server.http.request import HubRequest
from hubgate.server.oauth.apps import management
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.exchange import issued_tokens
from hubgate.server.oauth.explain import lookup
from hubgate.server.oauth.requests import submission
from hubgate.server.web.owner_routes import OwnerContext
from hubgate.server.web.pages.oauth.apps.form import MATCHES, filled, lifetimes, scope_choice
from hubgate.server.web.pages.oauth.apps.frame import ONE, Frame
from hubgate.server.web.rendering import NO_ERRORS


def routes(frame: Frame) -> list[Route]:
    async def show(
        request: HubRequest, context: OwnerContext, app: App, draft: App, errors: Mapping[str, str] = NO_ERRORS
    ) -> Response:
        oauth = frame.oauth
        return frame.show(
            request,
            context,
            "app.html",
            errors,
            app=app,
            at=context.at(app.client_id),
            draft=draft,
            choice=scope_choice(draft, oauth.extra_scopes),
            lifetimes=lifetimes(draft.token_lifetime),
            matches=MATCHES,
            secrets=await management.secrets_of(oauth, app),
            users=await management.count_users(oauth, app),
            refusals=await lookup.of_app(oauth, app),
            asked=await submission.of_app(oauth, app),
            live=await issued_tokens.count(oauth, app) if context.organization else 0,
        )

    async def one(request: HubRequest, context: OwnerContext) -> Response:
        app = await frame.app(request, context)
        return await show(request, context, app, app)

    async def save(request: HubRequest, context: OwnerContext) -> Response:
        app, form = await frame.app(request, context), request.form_fields
        try:
            changed = await management.update(frame.oauth, app, lambda latest: filled(latest, form), context.actor)
        except FieldErrors as error:
            return await show(request, context, app, filled(app, form), error.fields)
        return frame.pages.redirect(context.at(app.client_id), f"Saved {changed.name}.")

    return [
        *frame.routes("GET", ONE, one, "One app"),
        *frame.routes("POST", ONE, save, "Change an app"),
    ]
