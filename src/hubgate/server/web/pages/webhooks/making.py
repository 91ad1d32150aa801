"""The list of webhooks, and a new one. A secret that the hub made is in the answer to the form."""

from collections.abc import Mapping

from starlette.responses import Response

from hubgate.server.access.caller import actor_of
from hubgate.server.accounts import form_once
from hubgate.server.accounts.form_once import AlreadyUsed
from hubgate.server.edge.routes import Route
from hubgate.server.errors import FieldErrors, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.web.pages.settings.paged import shown_of
from hubgate.server.web.pages.webhooks.form import DOMAIN_WORDS, MAKE, Draft, sent, wanted_anew
from hubgate.server.web.pages.webhooks.frame import Desk, Frame, name_of
from hubgate.server.web.rendering import NO_ERRORS
from hubgate.server.webhooks.activity import reading
from hubgate.server.webhooks.managing import managing

_LONGEST_WATCH = 200


def routes(frame: Frame) -> list[Route]:
    async def every(request: HubRequest, desk: Desk) -> Response:
        found = await managing.every(frame.webhooks, desk.owner)
        latest = await reading.latest(frame.webhooks, desk.owner)
        rows = [(kept, name_of(kept.webhook), latest.get(kept.webhook.id)) for kept in found]
        return frame.show(request, desk, "list.html", shown=shown_of(request, rows), most=frame.webhooks.per_owner)

    def show(
        request: HubRequest, desk: Desk, draft: Draft, errors: Mapping[str, str] = NO_ERRORS, already: str = ""
    ) -> Response:
        return frame.show(
            request,
            desk,
            "new.html",
            errors,
            draft=draft,
            domain_words=DOMAIN_WORDS,
            once=form_once.number_for(frame.accounts, desk.user),
            already=already,
        )

    async def begin(request: HubRequest, desk: Desk) -> Response:
        """What to watch may be in the address, so that other pages can lead here."""
        watch = request.query().get("watch", "")[:_LONGEST_WATCH]
        return show(request, desk, Draft(watched=watch or desk.own_watch))

    async def create(request: HubRequest, desk: Desk) -> Response:
        form = request.form_fields
        draft = sent(form)
        try:
            use = form_once.check_number(frame.accounts, desk.user, form.get(form_once.FIELD))
            asked = wanted_anew(draft, form.get("secret"), frame.webhooks.egress)
            kept = await managing.create(frame.webhooks, desk.owner, asked, actor_of(request), use)
        except FieldErrors as error:
            return show(request, desk, draft, error.fields)
        except AlreadyUsed as error:
            return show(request, desk, Draft(), already=error.message)
        except Unprocessable as error:
            return show(request, desk, draft, {"form": error.message})
        at = desk.at(kept.webhook)
        if draft.secret_kind != MAKE:
            return frame.pages.see(at, "Saved. Send a test to see whether the receiver answers.")
        return frame.show_one(request, desk, kept, "made.html", secret=asked.secret)

    return [
        *frame.views("", every, "Webhooks"),
        *frame.forms("GET", "/new", begin, "The form for a new webhook"),
        *frame.forms("POST", "", create, "Make a webhook"),
    ]
