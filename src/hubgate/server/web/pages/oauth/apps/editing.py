"""One app: its settings, who uses it, what it was refused; and for an organization's, the limits of token exchange."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from hubgate.server.errors import FieldErrors
from hubgate.server.http.request import HubRequest
from hubgate.server.http.routes import Route
from hubgate.server.oauth.apps import owning
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.explain import reading
from hubgate.server.oauth.requests import asking
from hubgate.server.web.app_owner import Desk
from hubgate.server.web.pages.oauth.apps.form import MATCHES, ROLES, filled, lifetimes, limited, scope_choice
from hubgate.server.web.pages.oauth.apps.frame import ONE, Frame
from hubgate.server.web.rendering import NO_ERRORS


def routes(frame: Frame) -> list[Route]:
    async def show(
        request: HubRequest, desk: Desk, app: App, draft: App, errors: Mapping[str, str] = NO_ERRORS, **values: Any
    ) -> Response:
        oauth = frame.oauth
        return frame.show(
            request,
            desk,
            "app.html",
            errors,
            app=app,
            at=desk.at(app.client_id),
            draft=draft,
            choice=scope_choice(draft, oauth.extra_scopes),
            lifetimes=lifetimes(draft.token_lifetime),
            durations=lifetimes(draft.exchange.duration),
            matches=MATCHES,
            roles=ROLES,
            secrets=await owning.secrets_of(oauth, app),
            users=await owning.users_of(oauth, app),
            refusals=await reading.of_app(oauth, app),
            asked=await asking.of_app(oauth, app),
            **{"quota": app.exchange.daily_quota or "", **values},
        )

    async def one(request: HubRequest, desk: Desk) -> Response:
        app = await frame.app(request, desk)
        return await show(request, desk, app, app)

    async def save(request: HubRequest, desk: Desk) -> Response:
        app, form = await frame.app(request, desk), request.form_fields
        try:
            changed = await owning.update(frame.oauth, app, lambda latest: filled(latest, form), desk.actor)
        except FieldErrors as error:
            return await show(request, desk, app, filled(app, form), error.fields)
        return frame.pages.see(desk.at(app.client_id), f"Saved {changed.name}.")

    async def limit(request: HubRequest, desk: Desk) -> Response:
        app, form = await frame.app(request, desk), request.form_fields
        try:
            await owning.update(frame.oauth, app, lambda latest: limited(latest, form), desk.actor)
        except FieldErrors as error:
            return await show(request, desk, app, limited(app, form), error.fields, quota=form.get("dailyQuota"))
        return frame.pages.see(desk.at(app.client_id), "Saved the limits of token exchange.")

    return [
        *frame.routes("GET", ONE, one, "One app"),
        *frame.routes("POST", ONE, save, "Change an app"),
        frame.organizations_route("POST", f"{ONE}/exchange", limit, "Limit token exchange"),
    ]
