"""`/oauth/device`: the page on which a user enters the code that a device shows, and allows or denies access.

A link with the code only fills in the field. The user must always press a button here: otherwise the sender of such a
link would gain access to the account (RFC 8628, section 5.4).
"""

import re

from msgspec import Struct

from hubgate.server.access.caller import Caller, caller_of
from hubgate.server.accounts.limits import network_of
from hubgate.server.clock import MINUTE
from hubgate.server.edge.routes import KIB, PublicHandler, Route, public
from hubgate.server.errors import HubError, TooManyRequests, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import RedirectResponse, Response
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.apps.logos import address_of_logo
from hubgate.server.oauth.apps.management import owner_name
from hubgate.server.oauth.consent import page_mac
from hubgate.server.oauth.consent import store as consent_store
from hubgate.server.oauth.consent.approval import Selection
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.device.decision import (
    AlreadyDecided,
    DeviceNotFound,
    PendingDevice,
    approve,
    deny,
    find_pending,
)
from hubgate.server.oauth.errors import OAuthError
from hubgate.server.web.local_path import continue_to
from hubgate.server.web.oauth.device import PATH
from hubgate.server.web.pages.oauth.consent import consent_view, server_groups
from hubgate.server.web.rendering import Pages

VERIFY, DONE = f"{PATH}/verify", f"{PATH}/done"
_LONGEST_SHOWN = 20
_CODE_FORM = "oauth/device.html"


def routes(pages: Pages, oauth: OAuth) -> list[Route]:
    page = DevicePages(pages, oauth)
    return [
        _route("GET", PATH, page.show, "The form for the code of a device"),
        _route("POST", VERIFY, page.verify, "Find a device by its code, then allow or deny it"),
        _route("GET", DONE, page.done, "The decision about a device"),
    ]


def _route(method: str, path: str, handler: PublicHandler, summary: str) -> Route:
    # leaves_hub as at every step of a sign-in: Chromium applies form-action to later redirects by the app.
    return Route(
        method,
        path,
        public(handler),
        Surface.PAGE,
        summary,
        body_cap=64 * KIB,
        secret_address=True,
        leaves_hub=True,
    )


class DevicePages(Struct, frozen=True):
    pages: Pages
    oauth: OAuth

    async def show(self, request: HubRequest) -> Response:
        typed = request.query().get("user_code", "")[:_LONGEST_SHOWN]
        if caller_of(request).session is None:
            return _sign_in(typed)
        return self.pages.page(request, _CODE_FORM, typed=typed, switch=_another_account(typed))

    async def verify(self, request: HubRequest) -> Response:
        caller, form = caller_of(request), request.form_fields
        typed = form.get("user_code")
        if caller.session is None:
            return _sign_in(typed[:_LONGEST_SHOWN])
        try:
            waiting = await find_pending(self.oauth, caller.signed_in_person, typed, request.client_ip)
            if not form.get("decision"):
                return await self.show_confirmation(request, caller, waiting)
            return await self._handle_decision(request, caller, waiting)
        except (DeviceNotFound, OAuthError, TooManyRequests) as error:
            if isinstance(error, AlreadyDecided) and form.get("decision"):
                return _redirect_to_result(denied=error.denied)
            return self.show_error(request, error, typed[:_LONGEST_SHOWN])

    def show_error(self, request: HubRequest, error: HubError, typed: str) -> Response:
        return self.pages.show_errors(
            request, _CODE_FORM, error, "user_code", typed=typed, switch=_another_account(typed)
        )

    async def done(self, request: HubRequest) -> Response:
        return self.pages.page(request, "oauth/device_done.html", denied="denied" in request.query())

    async def _handle_decision(self, request: HubRequest, caller: Caller, waiting: PendingDevice) -> Response:
        form, person, session = request.form_fields, caller.signed_in_person, caller.session
        signed_in_at = session.created_at if session else 0
        decision = form.get("decision")
        if decision == "deny":
            await deny(self.oauth, waiting, person, signed_in_at)
            return _redirect_to_result(denied=True)
        if decision != "approve":
            raise Unprocessable("Allow or deny.")
        ticked = Selection(form.all("scopes"), form.all("orgs"))
        if not page_mac.matches(form.get(page_mac.FIELD), waiting.access, person.user.id, self.oauth.secret):
            return await self.show_confirmation(request, caller, waiting, ticked)
        await approve(self.oauth, waiting, person, ticked, signed_in_at)
        return _redirect_to_result(denied=False)

    async def show_confirmation(
        self, request: HubRequest, caller: Caller, waiting: PendingDevice, given: Selection | None = None
    ) -> Response:
        """Show the confirmation page. `given` is the user's selection on a page that is no longer valid."""
        person, access, code = caller.signed_in_person, waiting.access, waiting.code
        before = await consent_store.find(self.oauth.db, person.user.id, access.app.client_id)
        return self.pages.page(
            request,
            "oauth/device_confirm.html",
            view=consent_view(self.oauth, access, person, before, given),
            server_groups=await server_groups(self.oauth, access, given),
            owner=await owner_name(self.oauth, access.app),
            logo=await address_of_logo(self.oauth, access.app),
            waiting=waiting,
            minutes=(self.oauth.clock() - code.created_at) // MINUTE,
            from_other_network=network_of(code.ip) != network_of(request.client_ip),
            switch=_another_account(waiting.user_code),
            shown_field=page_mac.FIELD,
            shown=page_mac.compute(access, person.user.id, self.oauth.secret),
            again=given is not None,
        )


def _redirect_to_result(*, denied: bool) -> Response:
    return RedirectResponse(f"{DONE}?denied" if denied else DONE, 303)


def _with_code(typed: str) -> str:
    plain = re.sub("[^0-9A-Za-z-]", "", typed)
    return f"{PATH}?user_code={plain}" if plain else PATH


def _another_account(typed: str) -> str:
    return continue_to("/login?again=1", _with_code(typed))


def _sign_in(typed: str) -> Response:
    """Redirect to sign-in and back, with the code still in the field."""
    return RedirectResponse(continue_to("/login", _with_code(typed)), 303)
