"""The pages that list, register, change and delete apps.

The secret of a new app is only in the response to its form.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from hubgate.server.accounts import single_use_forms
from hubgate.server.accounts.pictures import changes as pictures
from hubgate.server.accounts.single_use_forms import AlreadyUsed
from hubgate.server.edge.routes import Route
from hubgate.server.errors import FieldErrors
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.oauth.apps import logos, management
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.exchange import issued_tokens
from hubgate.server.oauth.operator_requests import submission
from hubgate.server.web.owner_routes import OwnerContext
from hubgate.server.web.pages.listing import list_page
from hubgate.server.web.pages.oauth.apps.form import EMPTY_APP, MATCHES, SIGNATURES, apply_form, lifetimes, scope_choice
from hubgate.server.web.pages.oauth.apps.page_context import ONE, AppPageContext
from hubgate.server.web.pages.oauth.quickstart import snippets
from hubgate.server.web.pages.picture_forms import ROUTE_OPTIONS, read_picture
from hubgate.server.web.rendering import NO_ERRORS

_DELETE = f"{ONE}/delete"


def routes(base: AppPageContext) -> list[Route]:
    return [*_list_and_new(base), *_settings(base), *_deletion(base)]


def _list_and_new(base: AppPageContext) -> list[Route]:
    async def list_all(request: HubRequest, context: OwnerContext) -> Response:
        found = await management.of_owner(base.oauth, context.owner)
        return base.show(request, context, "list.html", shown=list_page(request, found[::-1]))

    def show(
        request: HubRequest,
        context: OwnerContext,
        draft: App,
        errors: Mapping[str, str] = NO_ERRORS,
        already_used: str = "",
    ) -> Response:
        return base.show(
            request,
            context,
            "new.html",
            errors,
            draft=draft,
            choice=scope_choice(draft, ()),
            lifetimes=lifetimes(draft.token_lifetime),
            matches=MATCHES,
            signatures=SIGNATURES,
            nonce=single_use_forms.new_nonce(base.accounts, context.user),
            already_used=already_used,
        )

    async def show_form(request: HubRequest, context: OwnerContext) -> Response:
        return show(request, context, EMPTY_APP)

    async def create(request: HubRequest, context: OwnerContext) -> Response:
        form = request.form_fields
        draft = replace(apply_form(EMPTY_APP, form), confidential=form.get("secret") != "no")
        try:
            nonce = single_use_forms.check_nonce(base.accounts, context.user, form.get(single_use_forms.FIELD))
            app, secret = await management.create(base.oauth, context.owner, draft, context.actor, nonce)
        except FieldErrors as error:
            return show(request, context, draft, error.fields)
        except AlreadyUsed as error:
            return show(request, context, EMPTY_APP, already_used=error.message)
        samples = snippets(base.oauth.base_url, app)
        return base.show(
            request,
            context,
            "created.html",
            app=app,
            secret=secret,
            snippets=samples,
            at=context.address_of(app.client_id),
        )

    return [
        *base.routes("GET", "", list_all, "The apps you build"),
        *base.routes("GET", "/new", show_form, "The form for a new app"),
        *base.routes("POST", "", create, "Register an app"),
    ]


def _settings(base: AppPageContext) -> list[Route]:
    async def show(
        request: HubRequest, context: OwnerContext, app: App, draft: App, errors: Mapping[str, str] = NO_ERRORS
    ) -> Response:
        oauth = base.oauth
        return base.show(
            request,
            context,
            "app.html",
            errors,
            app=app,
            at=context.address_of(app.client_id),
            draft=draft,
            choice=scope_choice(draft, oauth.extra_scopes),
            lifetimes=lifetimes(draft.token_lifetime),
            matches=MATCHES,
            signatures=SIGNATURES,
            secrets=await management.secrets_of(oauth, app),
            users=await management.get_users(oauth, app),
            refusals=await oauth.refusals.of_app(app.client_id),
            operator_requests=await submission.of_app(oauth, app),
            live=await issued_tokens.count(oauth, app) if context.organization else 0,
            logo=await logos.address_of_logo(oauth, app),
        )

    async def show_app(request: HubRequest, context: OwnerContext) -> Response:
        app = await base.app(request, context)
        return await show(request, context, app, app)

    async def save(request: HubRequest, context: OwnerContext) -> Response:
        app, form = await base.app(request, context), request.form_fields
        try:
            changed = await management.update(base.oauth, app, lambda latest: apply_form(latest, form), context.actor)
        except FieldErrors as error:
            return await show(request, context, app, apply_form(app, form), error.fields)
        return base.pages.redirect(context.address_of(app.client_id), f"Saved {changed.name}.")

    async def set_logo(request: HubRequest, context: OwnerContext) -> Response:
        app = await base.app(request, context)
        try:
            picture = await pictures.draw(base.accounts, context.user, await read_picture(request))
        except FieldErrors as error:
            return await show(request, context, app, app, error.fields)
        await logos.set_logo(base.oauth, app, picture, context.actor)
        return base.pages.redirect(context.address_of(app.client_id), "The logo was saved.")

    async def remove_logo(request: HubRequest, context: OwnerContext) -> Response:
        app = await base.app(request, context)
        await logos.remove_logo(base.oauth, app, context.actor)
        return base.pages.redirect(context.address_of(app.client_id), "The logo was removed.")

    return [
        *base.routes("GET", ONE, show_app, "One app"),
        *base.routes("POST", ONE, save, "Change an app"),
        *base.routes("POST", f"{ONE}/logo", set_logo, "Upload an app's logo", **ROUTE_OPTIONS),
        *base.routes("POST", f"{ONE}/logo/delete", remove_logo, "Remove an app's logo"),
    ]


def _deletion(base: AppPageContext) -> list[Route]:
    async def confirm(
        request: HubRequest, context: OwnerContext, errors: Mapping[str, str] = NO_ERRORS, typed: str = ""
    ) -> Response:
        app = await base.app(request, context)
        users = await management.get_users(base.oauth, app)
        at = context.address_of(app.client_id)
        return base.show(request, context, "delete.html", errors, app=app, at=at, users=users.total, typed=typed)

    async def delete(request: HubRequest, context: OwnerContext) -> Response:
        app, typed = await base.app(request, context), " ".join(request.form_fields.get("name").split())
        if typed != app.name:
            return await confirm(request, context, {"name": f"Type {app.name}, exactly as shown here."}, typed)
        await management.delete(base.oauth, app, context.actor)
        return base.pages.redirect(context.root, f"Deleted {app.name}.")

    return [
        *base.routes("GET", _DELETE, confirm, "Confirm deleting an app"),
        *base.routes("POST", _DELETE, delete, "Delete an app"),
    ]
