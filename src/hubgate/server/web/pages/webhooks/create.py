"""The list of webhooks, and the form for a new one. A generated secret is only in the response to the form."""

from collections.abc import Mapping

from starlette.responses import Response

from hubgate.server.accounts import single_use_forms
from hubgate.server.accounts.single_use_forms import AlreadyUsed
from hubgate.server.edge.routes import Route
from hubgate.server.errors import FieldErrors, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.web.owner_routes import OwnerContext
from hubgate.server.web.pages.listing import list_page
from hubgate.server.web.pages.webhooks.form import DOMAIN_WORDS, MAKE, Draft, requested_change, sent
from hubgate.server.web.pages.webhooks.frame import Frame, name_of
from hubgate.server.web.rendering import NO_ERRORS
from hubgate.server.webhooks.activity import delivery_log
from hubgate.server.webhooks.management import lifecycle

_LONGEST_WATCH = 200


def routes(frame: Frame) -> list[Route]:
    async def every(request: HubRequest, context: OwnerContext) -> Response:
        found = await lifecycle.every(frame.webhooks, context.owner)
        latest = await delivery_log.latest(frame.webhooks, context.owner)
        rows = [(stored, name_of(stored.webhook), latest.get(stored.webhook.id)) for stored in found]
        return frame.show(request, context, "list.html", shown=list_page(request, rows), most=frame.webhooks.per_owner)

    def show(
        request: HubRequest,
        context: OwnerContext,
        draft: Draft,
        errors: Mapping[str, str] = NO_ERRORS,
        already: str = "",
    ) -> Response:
        return frame.show(
            request,
            context,
            "new.html",
            errors,
            draft=draft,
            domain_words=DOMAIN_WORDS,
            once=single_use_forms.number_for(frame.accounts, context.user),
            already=already,
        )

    async def begin(request: HubRequest, context: OwnerContext) -> Response:
        """Show the form. Other pages link here with the repo to watch in the query."""
        watch = request.query().get("watch", "")[:_LONGEST_WATCH]
        return show(request, context, Draft(watched=watch or _default_watch(context)))

    async def create(request: HubRequest, context: OwnerContext) -> Response:
        form = request.form_fields
        draft = sent(form)
        try:
            use = single_use_forms.check_number(frame.accounts, context.user, form.get(single_use_forms.FIELD))
            asked = requested_change(draft, form.get("secret"), frame.webhooks.egress)
            stored = await lifecycle.create(frame.webhooks, context.owner, asked, context.actor, use)
        except FieldErrors as error:
            return show(request, context, draft, error.fields)
        except AlreadyUsed as error:
            return show(request, context, Draft(), already=error.message)
        except Unprocessable as error:
            return show(request, context, draft, {"form": error.message})
        at = context.at(stored.webhook.id)
        if draft.secret_kind != MAKE:
            return frame.pages.redirect(at, "Saved. Send a test to see whether the receiver answers.")
        return frame.show_one(request, context, stored, "made.html", secret=asked.secret)

    return [
        *frame.views("", every, "Webhooks"),
        *frame.forms("GET", "/new", begin, "The form for a new webhook"),
        *frame.forms("POST", "", create, "Make a webhook"),
    ]


def _default_watch(context: OwnerContext) -> str:
    """The default watch: all repos of the owner."""
    return f"org:{context.organization.name}" if context.organization else f"user:{context.user.name}"
