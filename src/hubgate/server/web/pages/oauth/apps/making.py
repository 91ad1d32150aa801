"""The list of apps, and a new one. Its secret is in the answer to the form and nowhere else."""

from collections.abc import Mapping
from dataclasses import replace

from starlette.responses import Response

from hubgate.server.accounts import form_once
from hubgate.server.accounts.form_once import AlreadyUsed
from hubgate.server.edge.routes import Route
from hubgate.server.errors import FieldErrors
from hubgate.server.http.request import HubRequest
from hubgate.server.oauth.apps import owning
from hubgate.server.oauth.apps.model import App
from hubgate.server.web.app_owner import Desk
from hubgate.server.web.pages.oauth.apps.form import BLANK, MATCHES, filled, lifetimes, scope_choice
from hubgate.server.web.pages.oauth.apps.frame import Frame
from hubgate.server.web.pages.oauth.quickstart import snippets
from hubgate.server.web.pages.settings.paged import shown_of
from hubgate.server.web.rendering import NO_ERRORS


def routes(frame: Frame) -> list[Route]:
    async def every(request: HubRequest, desk: Desk) -> Response:
        found = await owning.of_owner(frame.oauth, desk.owner)
        return frame.show(request, desk, "list.html", shown=shown_of(request, found[::-1]))

    def show(
        request: HubRequest, desk: Desk, draft: App, errors: Mapping[str, str] = NO_ERRORS, already: str = ""
    ) -> Response:
        return frame.show(
            request,
            desk,
            "new.html",
            errors,
            draft=draft,
            choice=scope_choice(draft, ()),
            lifetimes=lifetimes(draft.token_lifetime),
            matches=MATCHES,
            once=form_once.number_for(frame.accounts, desk.user),
            already=already,
        )

    async def begin(request: HubRequest, desk: Desk) -> Response:
        return show(request, desk, BLANK)

    async def create(request: HubRequest, desk: Desk) -> Response:
        form = request.form_fields
        draft = replace(filled(BLANK, form), confidential=form.get("secret") != "no")
        try:
            use = form_once.check_number(frame.accounts, desk.user, form.get(form_once.FIELD))
            app, secret = await owning.create(frame.oauth, desk.owner, draft, desk.actor, use)
        except FieldErrors as error:
            return show(request, desk, draft, error.fields)
        except AlreadyUsed as error:
            return show(request, desk, BLANK, already=error.message)
        ready = snippets(frame.oauth.base_url, app)
        return frame.show(request, desk, "made.html", app=app, secret=secret, snippets=ready, at=desk.at(app.client_id))

    return [
        *frame.routes("GET", "", every, "The apps one builds"),
        *frame.routes("GET", "/new", begin, "The form for a new app"),
        *frame.routes("POST", "", create, "Register an app"),
    ]
