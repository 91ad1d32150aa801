"""The list of apps, and the form for a new one. The secret is only in the response to the form."""

from collections.abc import Mapping
from dataclasses import replace

from starlette.responses import Response

from hubgate.server.accounts import single_use_forms
from hubgate.server.accounts.single_use_forms import AlreadyUsed
from hubgate.server.edge.routes import Route
from hubgate.server.errors import FieldErrors
from hubgate.server.http.request import HubRequest
from hubgate.server.oauth.apps import management
from hubgate.server.oauth.apps.model import App
from hubgate.server.web.owner_routes import OwnerContext
from hubgate.server.web.pages.listing import list_page
from hubgate.server.web.pages.oauth.apps.form import BLANK, MATCHES, filled, lifetimes, scope_choice
from hubgate.server.web.pages.oauth.apps.frame import Frame
from hubgate.server.web.pages.oauth.quickstart import snippets
from hubgate.server.web.rendering import NO_ERRORS


def routes(frame: Frame) -> list[Route]:
    async def every(request: HubRequest, context: OwnerContext) -> Response:
        found = await management.of_owner(frame.oauth, context.owner)
        return frame.show(request, context, "list.html", shown=list_page(request, found[::-1]))

    def show(
        request: HubRequest, context: OwnerContext, draft: App, errors: Mapping[str, str] = NO_ERRORS, already: str = ""
    ) -> Response:
        return frame.show(
            request,
            context,
            "new.html",
            errors,
            draft=draft,
            choice=scope_choice(draft, ()),
            lifetimes=lifetimes(draft.token_lifetime),
            matches=MATCHES,
            once=single_use_forms.number_for(frame.accounts, context.user),
            already=already,
        )

    async def begin(request: HubRequest, context: OwnerContext) -> Response:
        return show(request, context, BLANK)

    async def create(request: HubRequest, context: OwnerContext) -> Response:
        form = request.form_fields
        draft = replace(filled(BLANK, form), confidential=form.get("secret") != "no")
        try:
            use = single_use_forms.check_number(frame.accounts, context.user, form.get(single_use_forms.FIELD))
            app, secret = await management.create(frame.oauth, context.owner, draft, context.actor, use)
        except FieldErrors as error:
            return show(request, context, draft, error.fields)
        except AlreadyUsed as error:
            return show(request, context, BLANK, already=error.message)
        ready = snippets(frame.oauth.base_url, app)
        return frame.show(
            request, context, "made.html", app=app, secret=secret, snippets=ready, at=context.at(app.client_id)
        )

    return [
        *frame.routes("GET", "", every, "The apps one builds"),
        *frame.routes("GET", "/new", begin, "The form for a new app"),
        *frame.routes("POST", "", create, "Register an app"),
    ]
