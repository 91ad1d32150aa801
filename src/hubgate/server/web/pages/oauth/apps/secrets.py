"""Client secrets of an app: creating a new secret, revoking an old one, and removing all of them."""

from collections.abc import Mapping
from typing import Any

from hubgate.server.accounts import single_use_forms
from hubgate.server.accounts.single_use_forms import AlreadyUsed
from hubgate.server.edge.routes import Route
from hubgate.server.errors import FieldErrors
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.oauth.apps import management
from hubgate.server.oauth.exchange import issued_tokens
from hubgate.server.oauth.exchange.model import TokenFilter
from hubgate.server.storage.database import Tx
from hubgate.server.web.owner_routes import OwnerContext
from hubgate.server.web.pages.oauth.apps.form import OVERLAPS
from hubgate.server.web.pages.oauth.apps.page_context import ONE, AppPageContext
from hubgate.server.web.rendering import NO_ERRORS

_SECRET = f"{ONE}/secret"


def routes(base: AppPageContext) -> list[Route]:
    async def show(
        request: HubRequest, context: OwnerContext, errors: Mapping[str, str] = NO_ERRORS, **values: Any
    ) -> Response:
        app = await base.app(request, context)
        return base.show(
            request,
            context,
            "secret.html",
            errors,
            app=app,
            at=context.address_of(app.client_id),
            overlaps=OVERLAPS,
            nonce=single_use_forms.new_nonce(base.accounts, context.user),
            live=await issued_tokens.count(base.oauth, app) if context.organization else 0,
            **{"overlap": "0", "secret": "", "already_used": "", "revoked": 0, "revoke_requested": False, **values},
        )

    async def confirm(request: HubRequest, context: OwnerContext) -> Response:
        return await show(request, context)

    async def refresh(request: HubRequest, context: OwnerContext) -> Response:
        app, form = await base.app(request, context), request.form_fields
        overlap, revoke_requested, revoked = form.get("overlapSeconds", "0"), form.get("endTokens") == "on", 0

        async def revoke_tokens(tx: Tx) -> None:
            nonlocal revoked
            revoked = await issued_tokens.revoke_in(tx, app, TokenFilter(), context.actor, base.oauth.clock())

        try:
            nonce = single_use_forms.check_nonce(base.accounts, context.user, form.get(single_use_forms.FIELD))
            in_same_transaction = revoke_tokens if revoke_requested and context.organization else None
            seconds = int(overlap) if overlap in dict(OVERLAPS) else -1
            secret = await management.refresh_secret(
                base.oauth, app, seconds, context.actor, nonce, in_same_transaction
            )
        except FieldErrors as error:
            return await show(request, context, error.fields, overlap=overlap, revoke_requested=revoke_requested)
        except AlreadyUsed as error:
            return await show(request, context, already_used=error.message)
        # `app` was read before the change.
        return await show(
            request, context, secret=secret, overlap=overlap, revoked=revoked, had_secret=app.confidential
        )

    async def revoke_old(request: HubRequest, context: OwnerContext) -> Response:
        app, last_four = await base.app(request, context), request.form_fields.get("lastFour")
        await management.revoke_old_secret(base.oauth, app, last_four, context.actor)
        return base.pages.redirect(
            context.address_of(app.client_id), f"The secret that ends in {last_four} no longer works."
        )

    async def confirm_delete(request: HubRequest, context: OwnerContext) -> Response:
        app = await base.app(request, context)
        secrets = await management.secrets_of(base.oauth, app)
        at = context.address_of(app.client_id)
        return base.show(request, context, "secret_delete.html", app=app, at=at, secrets=len(secrets))

    async def delete(request: HubRequest, context: OwnerContext) -> Response:
        app = await management.delete_secret(base.oauth, await base.app(request, context), context.actor)
        return base.pages.redirect(
            context.address_of(app.client_id), f"{app.name} is now a public client. Its secret no longer works."
        )

    return [
        *base.routes("GET", _SECRET, confirm, "Confirm creating a new secret"),
        *base.routes("POST", _SECRET, refresh, "Create a new secret"),
        *base.routes("POST", f"{_SECRET}/end", revoke_old, "Revoke an old secret"),
        *base.routes("GET", f"{_SECRET}/delete", confirm_delete, "Confirm making an app a public client"),
        *base.routes("POST", f"{_SECRET}/delete", delete, "Make an app a public client"),
    ]
