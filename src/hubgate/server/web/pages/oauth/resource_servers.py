"""The pages about resource servers, in the settings of users and organizations.

The secret of a resource server is only in the response to the form that created it.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hubgate.server.accounts import single_use_forms
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.single_use_forms import AlreadyUsed
from hubgate.server.edge.routes import KIB, Handler, Route
from hubgate.server.errors import Conflict, FieldErrors, TooManyRequests
from hubgate.server.http.forms import Fields
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.resource_servers import management, proof
from hubgate.server.oauth.resource_servers.model import JWT, OPAQUE, ResourceScope, ResourceServer
from hubgate.server.web.owner_routes import RESOURCES, OwnerContext, render_settings_page
from hubgate.server.web.pages.listing import list_page
from hubgate.server.web.pages.oauth.apps.form import OVERLAPS
from hubgate.server.web.rendering import NO_ERRORS, Pages

_ONE = "/{id}"
_EMPTY = ResourceServer("", "", "")
FORMATS = ((OPAQUE, "Opaque: introspect them"), (JWT, "JWT: verify the signature"))


def routes(pages: Pages, oauth: OAuth, accounts: Accounts) -> list[Route]:
    page = _ResourcePages(pages, oauth, accounts)
    return [
        *page.routes("GET", "", page.list_all, "The APIs you protect"),
        *page.routes("GET", "/new", page.show_form, "The form for a new resource server"),
        *page.routes("POST", "", page.create, "Register a resource server"),
        *page.routes("GET", _ONE, page.show_one, "One resource server"),
        *page.routes("POST", _ONE, page.save, "Change a resource server"),
        *page.routes("POST", f"{_ONE}/verify", page.verify, "Prove control of a resource server"),
        *page.routes("GET", f"{_ONE}/secret", page.confirm_secret, "Confirm a new secret of a resource server"),
        *page.routes("POST", f"{_ONE}/secret", page.refresh_secret, "Create a new secret of a resource server"),
        *page.routes("GET", f"{_ONE}/delete", page.confirm_delete, "Confirm deleting a resource server"),
        *page.routes("POST", f"{_ONE}/delete", page.delete, "Delete a resource server"),
    ]


class _ResourcePages(Struct, frozen=True):
    pages: Pages
    oauth: OAuth
    accounts: Accounts

    def routes(self, method: str, path: str, handler: Handler[OwnerContext], summary: str) -> list[Route]:
        more: dict[str, Any] = {"form": path not in ("", _ONE), "body_cap": 64 * KIB}
        in_organization = f"{summary} (an organization's)"
        return [
            RESOURCES.route(None, method, path, handler, Surface.PAGE, summary, **more),
            RESOURCES.route(self.accounts, method, path, handler, Surface.PAGE, in_organization, **more),
        ]

    async def list_all(self, request: HubRequest, context: OwnerContext) -> Response:
        found = await management.of_owner(self.oauth, context.owner)
        return self._show(request, context, "list.html", shown=list_page(request, found[::-1]))

    async def show_form(self, request: HubRequest, context: OwnerContext) -> Response:
        return self._show_new(request, context, _EMPTY)

    async def create(self, request: HubRequest, context: OwnerContext) -> Response:
        form = request.form_fields
        draft = replace(apply_form(_EMPTY, form), identifier=form.get("identifier"))
        try:
            nonce = single_use_forms.check_nonce(self.accounts, context.user, form.get(single_use_forms.FIELD))
            server, secret = await management.create(self.oauth, context.owner, draft, context.actor, nonce)
        except FieldErrors as error:
            return self._show_new(request, context, draft, error.fields)
        except AlreadyUsed as error:
            return self._show_new(request, context, _EMPTY, already_used=error.message)
        at = context.address_of(server.id)
        return self._show(request, context, "created.html", server=server, secret=secret, at=at)

    async def show_one(self, request: HubRequest, context: OwnerContext) -> Response:
        server = await self._server(request, context)
        return await self._show_server(request, context, server, server)

    async def save(self, request: HubRequest, context: OwnerContext) -> Response:
        server, form = await self._server(request, context), request.form_fields
        try:
            changed = await management.update(
                self.oauth, server, lambda latest: apply_form(latest, form), context.actor
            )
        except FieldErrors as error:
            return await self._show_server(request, context, server, apply_form(server, form), error.fields)
        return self.pages.redirect(context.address_of(server.id), f"Saved {changed.name}.")

    async def verify(self, request: HubRequest, context: OwnerContext) -> Response:
        server = await self._server(request, context)
        try:
            await proof.verify(self.oauth, server, context.actor)
        except (Conflict, TooManyRequests) as error:
            return await self._show_server(request, context, server, server, {"challenge": error.message})
        return self.pages.redirect(context.address_of(server.id), f"{server.identifier} is yours to protect.")

    async def confirm_secret(self, request: HubRequest, context: OwnerContext) -> Response:
        return await self._show_secret(request, context)

    async def refresh_secret(self, request: HubRequest, context: OwnerContext) -> Response:
        server, form = await self._server(request, context), request.form_fields
        overlap = form.get("overlapSeconds", "0")
        try:
            nonce = single_use_forms.check_nonce(self.accounts, context.user, form.get(single_use_forms.FIELD))
            seconds = int(overlap) if overlap in dict(OVERLAPS) else -1
            secret = await management.refresh_secret(self.oauth, server, seconds, context.actor, nonce)
        except FieldErrors as error:
            return await self._show_secret(request, context, error.fields, overlap=overlap)
        except AlreadyUsed as error:
            return await self._show_secret(request, context, already_used=error.message)
        return await self._show_secret(request, context, secret=secret, overlap=overlap)

    async def confirm_delete(
        self, request: HubRequest, context: OwnerContext, errors: Mapping[str, str] = NO_ERRORS, typed: str = ""
    ) -> Response:
        server = await self._server(request, context)
        at = context.address_of(server.id)
        return self._show(request, context, "delete.html", errors, server=server, at=at, typed=typed)

    async def delete(self, request: HubRequest, context: OwnerContext) -> Response:
        server, typed = await self._server(request, context), " ".join(request.form_fields.get("name").split())
        if typed != server.name:
            return await self.confirm_delete(
                request, context, {"name": f"Type {server.name}, exactly as shown here."}, typed
            )
        await management.delete(self.oauth, server, context.actor)
        return self.pages.redirect(context.root, f"Deleted {server.name}.")

    async def _server(self, request: HubRequest, context: OwnerContext) -> ResourceServer:
        return await management.get(self.oauth, context.owner, request.param("id"))

    def _show_new(
        self,
        request: HubRequest,
        context: OwnerContext,
        draft: ResourceServer,
        errors: Mapping[str, str] = NO_ERRORS,
        already_used: str = "",
    ) -> Response:
        nonce = single_use_forms.new_nonce(self.accounts, context.user)
        return self._show(
            request,
            context,
            "new.html",
            errors,
            draft=draft,
            scope_lines=scope_lines(draft),
            formats=FORMATS,
            nonce=nonce,
            already_used=already_used,
        )

    async def _show_server(
        self,
        request: HubRequest,
        context: OwnerContext,
        server: ResourceServer,
        draft: ResourceServer,
        errors: Mapping[str, str] = NO_ERRORS,
    ) -> Response:
        return self._show(
            request,
            context,
            "resource.html",
            errors,
            server=server,
            at=context.address_of(server.id),
            draft=draft,
            scope_lines=scope_lines(draft),
            formats=FORMATS,
            old_secrets=await management.old_secrets(self.oauth, server),
        )

    async def _show_secret(
        self, request: HubRequest, context: OwnerContext, errors: Mapping[str, str] = NO_ERRORS, **values: Any
    ) -> Response:
        server = await self._server(request, context)
        return self._show(
            request,
            context,
            "secret.html",
            errors,
            server=server,
            at=context.address_of(server.id),
            nonce=single_use_forms.new_nonce(self.accounts, context.user),
            overlaps=OVERLAPS,
            **{"overlap": "0", "secret": "", "already_used": "", **values},
        )

    def _show(
        self,
        request: HubRequest,
        context: OwnerContext,
        template: str,
        errors: Mapping[str, str] = NO_ERRORS,
        **values: Any,
    ) -> Response:
        return render_settings_page(self.pages, request, context, f"resources/{template}", errors, **values)


def apply_form(server: ResourceServer, form: Fields) -> ResourceServer:
    """The server with the form's values: each line of `scopes` is a name and, after a space, its text."""
    lines = [line.split(maxsplit=1) for line in form.get("scopes").splitlines() if line.strip()]
    scopes = tuple(ResourceScope(words[0], words[1] if len(words) > 1 else "") for words in lines)
    return replace(server, name=form.get("name"), scopes=scopes, tokens=form.get("tokens", OPAQUE))


def scope_lines(server: ResourceServer) -> str:
    return "\n".join(f"{scope.name} {scope.text}" for scope in server.scopes)
