"""The list of webhooks, and the form for a new one. A generated secret is only in the response to the form."""

from collections.abc import Mapping

from hubgate.server.accounts import single_use_forms
from hubgate.server.accounts.single_use_forms import AlreadyUsed
from hubgate.server.edge.routes import Route
from hubgate.server.errors import FieldErrors, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.web.owner_routes import OwnerContext
from hubgate.server.web.pages.listing import list_page
from hubgate.server.web.pages.webhooks.charts import spark
from hubgate.server.web.pages.webhooks.form import (
    DOMAIN_LABELS,
    GENERATE,
    OWN,
    Draft,
    parse_draft,
    validate,
    validate_new,
)
from hubgate.server.web.pages.webhooks.page_context import WebhookPageContext, name_of
from hubgate.server.web.pages.webhooks.preview import UNKNOWN_NAMES, Preview, preview_new, unknown_to
from hubgate.server.web.rendering import NO_ERRORS
from hubgate.server.webhooks.activity import delivery_log
from hubgate.server.webhooks.activity.charts import hourly_totals
from hubgate.server.webhooks.management import lifecycle
from hubgate.server.webhooks.options import OPTIONS

_LONGEST_WATCH = 200


def routes(base: WebhookPageContext) -> list[Route]:
    async def list_all(request: HubRequest, context: OwnerContext) -> Response:
        found = await lifecycle.list_webhooks(base.webhooks, context.owner)
        latest = await delivery_log.latest(base.webhooks, context.owner)
        totals = await hourly_totals(base.webhooks, context.owner)
        rows = [
            (stored, name_of(stored.webhook), latest.get(stored.webhook.id), spark(totals.get(stored.webhook.id)))
            for stored in found
        ]
        return base.show(
            request, context, "list.html", shown=list_page(request, rows), limit=base.webhooks.max_per_owner
        )

    def show(
        request: HubRequest,
        context: OwnerContext,
        draft: Draft,
        errors: Mapping[str, str] = NO_ERRORS,
        already_used: str = "",
        preview: Preview | None = None,
    ) -> Response:
        return base.show(
            request,
            context,
            "new.html",
            errors,
            draft=draft,
            domain_words=DOMAIN_LABELS,
            options=OPTIONS,
            nonce=single_use_forms.new_nonce(base.accounts, context.user),
            already_used=already_used,
            preview=preview,
        )

    async def show_form(request: HubRequest, context: OwnerContext) -> Response:
        """Show the form. Other pages link here with the repo to watch in the query."""
        watch = request.query().get("watch", "")[:_LONGEST_WATCH]
        return show(request, context, Draft(watched=watch or _default_watch(context)))

    async def show_preview(request: HubRequest, context: OwnerContext) -> Response:
        """Show the form again, with the events that the webhook would have received. Nothing is stored."""
        form = request.form_fields
        draft = parse_draft(form)
        try:
            settings = validate(draft, base.webhooks.egress)
            typed = draft.secret_kind == OWN and bool(form.get("secret"))
            preview = await preview_new(base.webhooks, context, settings, secret_was_typed=typed)
        except FieldErrors as error:
            return show(request, context, draft, error.fields)
        return show(request, context, draft, preview=preview)

    async def create(request: HubRequest, context: OwnerContext) -> Response:
        form = request.form_fields
        draft = parse_draft(form)
        try:
            nonce = single_use_forms.check_nonce(base.accounts, context.user, form.get(single_use_forms.FIELD))
            settings = validate_new(draft, form.get("secret"), base.webhooks.egress)
            stored = await lifecycle.create(base.webhooks, context.owner, settings, context.actor, nonce)
        except FieldErrors as error:
            return show(request, context, draft, error.fields)
        except AlreadyUsed as error:
            return show(request, context, Draft(), already_used=error.message)
        except Unprocessable as error:
            return show(request, context, draft, {"form": error.message})
        at = context.address_of(stored.webhook.id)
        unknown = await unknown_to(base.webhooks, context, stored.watched)
        if draft.secret_kind != GENERATE:
            warning = f" {UNKNOWN_NAMES}" if unknown else ""
            return base.pages.redirect(at, f"Saved. Send a test to see whether the receiver answers.{warning}")
        return base.show_one(request, context, stored, "created.html", secret=settings.secret, unknown=unknown)

    return [
        *base.views("", list_all, "Webhooks"),
        *base.forms("GET", "/new", show_form, "The form for a new webhook"),
        *base.forms("POST", "/dry-run", show_preview, "The form for a new webhook, with a dry run"),
        *base.forms("POST", "", create, "Create a webhook"),
    ]


def _default_watch(context: OwnerContext) -> str:
    """The default watch: all repos of the owner."""
    return f"org:{context.organization.name}" if context.organization else f"user:{context.user.name}"
