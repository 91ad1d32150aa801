"""The list of apps, a new app, its settings, its deletion.

The secret of a new app is only in the response to its form.
"""

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
from hubgate.server.oauth.exchange import issued_tokens
from hubgate.server.oauth.requests import submission
from hubgate.server.web.owner_routes import OwnerContext
from hubgate.server.web.pages.listing import list_page
from hubgate.server.web.pages.oauth.apps.form import BLANK, MATCHES, filled, lifetimes, scope_choice
from hubgate.server.web.pages.oauth.apps.frame import ONE, Frame
from hubgate.server.web.pages.oauth.quickstart import snippets
from hubgate.server.web.rendering import NO_ERRORS

_DELETE = f"{ONE}/delete"


def routes(frame: Frame) -> list[Route]:
    return [*_list_and_new(frame), *_settings(frame), *_deletion(frame)]


def _list_and_new(frame: Frame) -> list[Route]:
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
            once=single_use_forms.new_nonce(frame.accounts, context.user),
            already=already,
        )

    async def begin(request: HubRequest, context: OwnerContext) -> Response:
        return show(request, context, BLANK)

    async def create(request: HubRequest, context: OwnerContext) -> Response:
        form = request.form_fields
        draft = replace(filled(BLANK, form), confidential=form.get("secret") != "no")
        try:
            nonce = single_use_forms.check_nonce(frame.accounts, context.user, form.get(single_use_forms.FIELD))
            app, secret = await management.create(frame.oauth, context.owner, draft, context.actor, nonce)
        except FieldErrors as error:
            return show(request, context, draft, error.fields)
        except AlreadyUsed as error:
            return show(request, context, BLANK, already=error.message)
        ready = snippets(frame.oauth.base_url, app)
        return frame.show(
            request, context, "created.html", app=app, secret=secret, snippets=ready, at=context.at(app.client_id)
        )

    return [
        *frame.routes("GET", "", every, "The apps you build"),
        *frame.routes("GET", "/new", begin, "The form for a new app"),
        *frame.routes("POST", "", create, "Register an app"),
    ]


def _settings(frame: Frame) -> list[Route]:
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
            users=await management.get_users(oauth, app),
            refusals=await oauth.refusals.of_app(app.client_id),
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


def _deletion(frame: Frame) -> list[Route]:
    async def ask(
        request: HubRequest, context: OwnerContext, errors: Mapping[str, str] = NO_ERRORS, typed: str = ""
    ) -> Response:
        app = await frame.app(request, context)
        users = await management.get_users(frame.oauth, app)
        at = context.at(app.client_id)
        return frame.show(request, context, "delete.html", errors, app=app, at=at, users=users.total, typed=typed)

    async def delete(request: HubRequest, context: OwnerContext) -> Response:
        app, typed = await frame.app(request, context), " ".join(request.form_fields.get("name").split())
        if typed != app.name:
            return await ask(request, context, {"name": f"Type {app.name}, as it is written here."}, typed)
        await management.delete(frame.oauth, app, context.actor)
        return frame.pages.redirect(context.root, f"Deleted {app.name}.")

    return [
        *frame.routes("GET", _DELETE, ask, "What deleting an app means"),
        *frame.routes("POST", _DELETE, delete, "Delete an app"),
    ]
