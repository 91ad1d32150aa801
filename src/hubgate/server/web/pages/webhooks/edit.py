"""One webhook's settings: address, watched repos, secret, enabling and disabling; its kinds of events; deletion."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from hubgate.server.accounts import single_use_forms
from hubgate.server.accounts.single_use_forms import AlreadyUsed
from hubgate.server.clock import iso
from hubgate.server.edge.routes import Route
from hubgate.server.errors import FieldErrors
from hubgate.server.events.kinds import Kind
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.web.owner_routes import OwnerContext
from hubgate.server.web.pages.webhooks import concurrent_edits
from hubgate.server.web.pages.webhooks.form import (
    DOMAIN_LABELS,
    GENERATE,
    OVERLAPS,
    Draft,
    draft_of,
    new_secret,
    parse_draft,
    validate,
)
from hubgate.server.web.pages.webhooks.page_context import ONE, WebhookPageContext, name_of
from hubgate.server.web.pages.webhooks.preview import Preview, preview_changes, unknown_to
from hubgate.server.web.rendering import NO_ERRORS
from hubgate.server.webhooks.activity import delivery_log
from hubgate.server.webhooks.activity.store import DeliveryFilter
from hubgate.server.webhooks.management import activation, lifecycle
from hubgate.server.webhooks.management.lifecycle import ConcurrentChange, StoredWebhook, WebhookRequest
from hubgate.server.webhooks.model import SKIPPED, SUSPENDED, Webhook
from hubgate.server.webhooks.options import OPTIONS
from hubgate.server.webhooks.replaying import jobs
from hubgate.server.webhooks.retention import deletion

_SETTINGS, _SECRET, _REMOVE = f"{ONE}/settings", f"{ONE}/secret", f"{ONE}/secret/remove"


def routes(base: WebhookPageContext) -> list[Route]:
    webhooks = base.webhooks

    def show(
        request: HubRequest,
        context: OwnerContext,
        stored: StoredWebhook,
        draft: Draft,
        errors: Mapping[str, str] = NO_ERRORS,
        preview: Preview | None = None,
    ) -> Response:
        now = webhooks.clock()
        until = stored.webhook.old_secret_until
        return base.show_one(
            request,
            context,
            stored,
            "settings.html",
            errors,
            draft=draft,
            hidden=concurrent_edits.hidden_fields(stored),
            domain_words=DOMAIN_LABELS,
            options=OPTIONS,
            overlap_until=until if until is not None and until > now else None,
            preview=preview,
        )

    async def settings(request: HubRequest, context: OwnerContext) -> Response:
        stored = await base.load(request, context)
        return show(request, context, stored, draft_of(stored))

    async def save(request: HubRequest, context: OwnerContext) -> Response:
        while True:
            try:
                return await merge_and_save(request, context, await base.load(request, context))
            except ConcurrentChange:
                # Retry with the current settings.
                continue

    async def merge_and_save(request: HubRequest, context: OwnerContext, stored: StoredWebhook) -> Response:
        form = request.form_fields
        shown = concurrent_edits.parse_hidden_fields(form, stored)
        draft, webhook = shown.merge(parse_draft(form), stored), stored.webhook
        try:
            settings = validate(draft, webhooks.egress, pull=webhook.url is None)
            changes = shown.changes(settings, draft, stored)
            await lifecycle.update(webhooks, context.owner, webhook.id, changes, context.actor, version=webhook.version)
        except FieldErrors as error:
            return show(request, context, stored, draft, error.fields)
        return base.pages.redirect(f"{context.address_of(webhook.id)}/settings", "Saved.")

    async def show_preview(request: HubRequest, context: OwnerContext) -> Response:
        """Show the form again, with the events that the changed webhook would have received. Nothing is stored."""
        stored = await base.load(request, context)
        shown = concurrent_edits.parse_hidden_fields(request.form_fields, stored)
        draft = shown.merge(parse_draft(request.form_fields), stored)
        try:
            settings = validate(draft, webhooks.egress, pull=stored.webhook.url is None)
            preview = await preview_changes(webhooks, context, stored, settings)
        except FieldErrors as error:
            return show(request, context, stored, draft, error.fields)
        return show(request, context, stored, draft, preview=preview)

    async def events(request: HubRequest, context: OwnerContext) -> Response:
        stored = await base.load(request, context)
        domains = stored.webhook.domains.split()
        kinds = [(kind, kind.domain in domains) for kind in Kind]
        unknown = await unknown_to(webhooks, context, stored.watched)
        return base.show_one(request, context, stored, "events.html", kinds=kinds, unknown=unknown)

    async def switch(request: HubRequest, context: OwnerContext, *, on: bool) -> Response:
        stored = await base.load(request, context)
        if on and stored.webhook.state == SUSPENDED:
            queued = await activation.resume(webhooks, context.owner, stored.webhook.id, context.actor)
            events = f"{queued:,} event{'' if queued == 1 else 's'}"
            message = f"Enabled. {events} queued again." if queued else "Enabled."
        else:
            await activation.switch(webhooks, context.owner, stored.webhook.id, context.actor, on=on)
            message = "Enabled." if on else "Disabled. Nothing is sent until you enable the webhook."
            if on and (offer := await replay_offer(stored.webhook)):
                skipped, query = offer
                events = f"{skipped:,} event{' was' if skipped == 1 else 's were'}"
                message = f"Enabled. {events} skipped while the webhook was disabled. You can replay them."
                return base.pages.redirect(f"{context.address_of(stored.webhook.id)}/replays?{query}", message)
        return base.pages.redirect(context.address_of(stored.webhook.id), message)

    async def replay_offer(webhook: Webhook) -> tuple[int, str] | None:
        """How many deliveries were skipped while the webhook was disabled, and the query of the form that replays
        them.
        """
        skipped, since = await jobs.skipped_while_disabled(webhooks, webhook)
        if not skipped:
            return None
        return skipped, urlencode({"since": iso(since).removesuffix("Z"), "states": SKIPPED})

    async def enable(request: HubRequest, context: OwnerContext) -> Response:
        return await switch(request, context, on=True)

    async def disable(request: HubRequest, context: OwnerContext) -> Response:
        return await switch(request, context, on=False)

    async def show_secret(
        request: HubRequest,
        context: OwnerContext,
        stored: StoredWebhook,
        errors: Mapping[str, str] = NO_ERRORS,
        **values: Any,
    ) -> Response:
        return base.show_one(
            request,
            context,
            stored,
            "secret.html",
            errors,
            overlaps=OVERLAPS,
            nonce=single_use_forms.new_nonce(base.accounts, context.user),
            **{"kind": GENERATE, "overlap": "0", "secret": "", "already_used": "", **values},
        )

    async def show_secret_form(request: HubRequest, context: OwnerContext) -> Response:
        return await show_secret(request, context, await base.load(request, context))

    async def set_secret(request: HubRequest, context: OwnerContext) -> Response:
        stored, form = await base.load(request, context), request.form_fields
        kind, overlap = form.get("secretKind", GENERATE), form.get("overlapSeconds", "0")
        try:
            nonce = single_use_forms.check_nonce(base.accounts, context.user, form.get(single_use_forms.FIELD))
            change = new_secret(kind, form.get("secret"), overlap)
            await lifecycle.update(webhooks, context.owner, stored.webhook.id, change, context.actor, nonce)
        except FieldErrors as error:
            return await show_secret(request, context, stored, error.fields, kind=kind, overlap=overlap)
        except AlreadyUsed as error:
            return await show_secret(request, context, stored, already_used=error.message)
        if kind == GENERATE:
            return await show_secret(request, context, stored, secret=change.secret, overlap=overlap)
        return base.pages.redirect(f"{context.address_of(stored.webhook.id)}/settings", "The secret is set.")

    async def confirm_remove(request: HubRequest, context: OwnerContext) -> Response:
        return base.show_one(request, context, await base.load(request, context), "secret_remove.html")

    async def remove(request: HubRequest, context: OwnerContext) -> Response:
        stored = await base.load(request, context)
        await lifecycle.update(webhooks, context.owner, stored.webhook.id, WebhookRequest(secret=""), context.actor)
        message = "The secret is removed. Deliveries are signed with the webhook's own key."
        return base.pages.redirect(f"{context.address_of(stored.webhook.id)}/settings", message)

    async def confirm_delete(
        request: HubRequest, context: OwnerContext, errors: Mapping[str, str] = NO_ERRORS, typed: str = ""
    ) -> Response:
        stored = await base.load(request, context)
        deliveries = await delivery_log.count(webhooks, stored.webhook, DeliveryFilter())
        return base.show_one(request, context, stored, "delete.html", errors, deliveries=deliveries, typed=typed)

    async def delete(request: HubRequest, context: OwnerContext) -> Response:
        stored, typed = await base.load(request, context), request.form_fields.get("name").strip()
        name = name_of(stored.webhook)
        if typed != name:
            return await confirm_delete(request, context, {"name": f"Type {name}, exactly as shown here."}, typed)
        await deletion.delete(webhooks, context.owner, stored.webhook.id, context.actor)
        return base.pages.redirect(context.root, f"Deleted the webhook to {name}.")

    return [
        *base.views(_SETTINGS, settings, "Settings of a webhook"),
        *base.forms("POST", _SETTINGS, save, "Change a webhook"),
        *base.forms("POST", f"{ONE}/dry-run", show_preview, "Settings of a webhook, with a dry run"),
        *base.views(f"{ONE}/events", events, "Kinds of events that a webhook sends"),
        *base.forms("POST", f"{ONE}/enable", enable, "Enable a webhook"),
        *base.forms("POST", f"{ONE}/disable", disable, "Disable a webhook"),
        *base.forms("GET", _SECRET, show_secret_form, "The form for a webhook's secret"),
        *base.forms("POST", _SECRET, set_secret, "Set a webhook's secret"),
        *base.forms("GET", _REMOVE, confirm_remove, "Confirm removing a webhook's secret"),
        *base.forms("POST", _REMOVE, remove, "Remove a webhook's secret"),
        *base.forms("GET", f"{ONE}/delete", confirm_delete, "Confirm deleting a webhook"),
        *base.forms("POST", f"{ONE}/delete", delete, "Delete a webhook"),
    ]
