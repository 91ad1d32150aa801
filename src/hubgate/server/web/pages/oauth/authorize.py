"""`GET|POST /oauth/authorize`: every step of an interactive sign-in returns to this address."""

from msgspec import Struct
from msgspec.structs import replace

from hubgate.server.access.caller import caller_of
from hubgate.server.accounts.model import Person
from hubgate.server.edge.routes import KIB, PublicHandler, Route, public
from hubgate.server.errors import Forbidden, Unprocessable
from hubgate.server.http.csrf import CSRF_FIELD, Csrf
from hubgate.server.http.forms import Fields
from hubgate.server.http.request import FORM_TYPE, HubRequest
from hubgate.server.http.responses import RedirectResponse, Response
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.apps.logos import address_of_logo
from hubgate.server.oauth.apps.management import owner_name
from hubgate.server.oauth.authorize import sign_in_mark
from hubgate.server.oauth.authorize.next_step import AskConsent, IssueCode, Reject, SignIn, Visit, next_step
from hubgate.server.oauth.authorize.request import (
    FORM_POST,
    AuthorizationRequest,
    RedirectedError,
    ReturnAddress,
    ShownError,
)
from hubgate.server.oauth.authorize.rules import parse
from hubgate.server.oauth.authorize.sign_in_mark import SignInMark
from hubgate.server.oauth.consent import page_mac
from hubgate.server.oauth.consent import store as consent_store
from hubgate.server.oauth.consent.approval import Selection, approve, find_approved_scopes, issue_code
from hubgate.server.oauth.consent.model import Consent
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.explain.recording import record_authorization_error
from hubgate.server.oauth.redirects import shown_host
from hubgate.server.web.local_path import continue_to
from hubgate.server.web.pages.oauth.consent import consent_view, server_groups
from hubgate.server.web.pages.oauth.return_address import PATH, Pairs, address_of, unpack, without_mark
from hubgate.server.web.rendering import Pages

# Fields that our consent form adds to the parameters of the request.
_OWN_FIELDS = frozenset({CSRF_FIELD, page_mac.FIELD, "decision", "scopes", "orgs"})
SIGN_IN, SIGN_IN_AGAIN = "/login", "/login?again=1"
_FOREIGN_FORM = "This form has expired or was sent by another site. Start again in the app."


def routes(pages: Pages, oauth: OAuth, csrf: Csrf) -> list[Route]:
    page = _Authorize(pages, oauth, csrf)
    return [_route("GET", page.show), _route("POST", page.decide)]


def _route(method: str, handler: PublicHandler) -> Route:
    return Route(
        method,
        PATH,
        public(handler),
        Surface.PAGE,
        "Sign a user in to an app",
        body_cap=64 * KIB,
        # Checked by the handler: without our CSRF field, a POST grants nothing new.
        csrf=False,
        leaves_hub=True,
        secret_address=True,
    )


class _Authorize(Struct, frozen=True):
    pages: Pages
    oauth: OAuth
    csrf: Csrf

    async def show(self, request: HubRequest) -> Response:
        pairs = unpack(request.query_fields().pairs)
        try:
            auth_request = await self._parse(request, pairs)
            return await self._continue(request, auth_request, pairs)
        except RedirectedError as refusal:
            return await self._refuse(
                request, refusal.return_address, refusal.error, refusal.description, refusal.about
            )

    async def decide(self, request: HubRequest) -> Response:
        """Handle a decision from our consent form, or a request that an app sends as POST."""
        form = await request.read_form() if request.content_type == FORM_TYPE else Fields([])
        app_pairs = [pair for pair in form.pairs if pair[0] not in _OWN_FIELDS]
        pairs = unpack(request.query_fields().pairs) + app_pairs
        try:
            auth_request = await self._parse(request, pairs)
            if form.get(CSRF_FIELD):
                return await self._handle_decision(request, auth_request, pairs, form)
            is_decision = form.pairs != app_pairs
            if not is_decision and request.headers.get("sec-fetch-site") in ("same-site", "cross-site"):
                # Sent from an app's page, so the browser withheld our cookie (SameSite). A GET will include it.
                return RedirectResponse(address_of(pairs), 303)
            # A decision from another site's form: if consent is needed, the request is rejected (attack O35).
            return await self._continue(request, auth_request, pairs, may_show_consent=not is_decision)
        except RedirectedError as refusal:
            return await self._refuse(
                request, refusal.return_address, refusal.error, refusal.description, refusal.about
            )

    async def _parse(self, request: HubRequest, pairs: Pairs) -> AuthorizationRequest:
        parameters = request.state.parameters = without_mark(pairs)
        try:
            return await parse(self.oauth, parameters, request.client_ip, caller_of(request).identity.user_id)
        except ShownError as refusal:
            code = refusal.code or "invalid_request"
            await record_authorization_error(self.oauth, request, parameters, code, refusal.message, refusal.about)
            raise

    async def _continue(
        self, request: HubRequest, auth_request: AuthorizationRequest, pairs: Pairs, *, may_show_consent: bool = True
    ) -> Response:
        visit = await self._visit(request, auth_request, pairs)
        match next_step(auth_request, visit):
            case SignIn():
                return self._sign_in(visit, pairs)
            case Reject(error=error, description=description):
                return await self._refuse(request, auth_request.return_address, error, description)
            case IssueCode() if visit.consent is not None and visit.session is not None and visit.person is not None:
                version = visit.person.user.credentials_version
                code = await issue_code(self.oauth, auth_request, visit.consent, visit.session.created_at, version)
                if code is not None:
                    return self._send(request, auth_request.return_address, code=code)
                visit = replace(visit, consent=None)
        if visit.person is None or not may_show_consent:
            raise Forbidden(_FOREIGN_FORM)
        return await self._show_consent(request, auth_request, visit.person, visit.consent, pairs)

    async def _show_consent(
        self,
        request: HubRequest,
        auth_request: AuthorizationRequest,
        person: Person,
        before: Consent | None,
        pairs: Pairs,
        given: Selection | None = None,
    ) -> Response:
        """Show the consent page. `given` is the user's selection on a page that is no longer valid."""
        others = [pair for pair in without_mark(pairs) if pair[0] != "prompt"]
        prompt = " ".join(sorted({*auth_request.prompt, "select_account"}))
        return self.pages.page(
            request,
            "oauth/consent.html",
            view=consent_view(self.oauth, auth_request.access, person, before, given),
            server_groups=await server_groups(self.oauth, auth_request.access, given),
            owner=await owner_name(self.oauth, auth_request.app),
            logo=await address_of_logo(self.oauth, auth_request.app),
            action=address_of(pairs),
            switch=address_of([*others, ("prompt", prompt)]),
            shown_field=page_mac.FIELD,
            shown=page_mac.compute(auth_request.access, person.user.id, self.oauth.secret),
            again=given is not None,
        )

    async def _handle_decision(
        self, request: HubRequest, auth_request: AuthorizationRequest, pairs: Pairs, form: Fields
    ) -> Response:
        visit = await self._visit(request, auth_request, pairs)
        step = next_step(auth_request, visit)
        if isinstance(step, SignIn) or visit.person is None or visit.session is None:
            return self._sign_in(visit, pairs)
        self.csrf.check(request, form.get(CSRF_FIELD))
        decision = form.get("decision")
        if decision == "deny":
            return await self._refuse(
                request, auth_request.return_address, "access_denied", "The user denied the request."
            )
        if decision != "approve" or not isinstance(step, AskConsent | IssueCode):
            raise Unprocessable("Allow or deny.")
        ticked = Selection(form.all("scopes"), form.all("orgs"))
        if not page_mac.matches(form.get(page_mac.FIELD), auth_request.access, visit.person.user.id, self.oauth.secret):
            return await self._show_consent(request, auth_request, visit.person, visit.consent, pairs, ticked)
        code = await approve(self.oauth, auth_request, visit.person, ticked, visit.session.created_at)
        if code is None:
            # A deleted app is rejected here; in all other cases the user starts again.
            await self._parse(request, pairs)
            return RedirectResponse(address_of(pairs), 303)
        return self._send(request, auth_request.return_address, code=code)

    async def _visit(self, request: HubRequest, auth_request: AuthorizationRequest, pairs: Pairs) -> Visit:
        caller, now = caller_of(request), self.oauth.clock()
        if caller.person is None or caller.session is None:
            return Visit(now)
        consent = await consent_store.find(self.oauth.db, caller.person.user.id, auth_request.app.client_id)
        approved = await find_approved_scopes(self.oauth.db, consent.id, auth_request.access) if consent else None
        received = next((value for name, value in pairs if name == sign_in_mark.PARAMETER), "")
        mark = sign_in_mark.read(received, pairs, self.oauth.secret, now)
        return Visit(now, caller.person, caller.session, consent, approved, mark)

    def _sign_in(self, visit: Visit, pairs: Pairs) -> Response:
        """Redirect to sign-in and back. The mark in the address requires a session that starts from now on."""
        mark = SignInMark(visit.session.id if visit.session else "", visit.now)
        back = address_of(
            [*without_mark(pairs), (sign_in_mark.PARAMETER, sign_in_mark.write(mark, pairs, self.oauth.secret))]
        )
        return RedirectResponse(continue_to(SIGN_IN if visit.session is None else SIGN_IN_AGAIN, back), 303)

    async def _refuse(
        self, request: HubRequest, return_address: ReturnAddress, error: str, description: str, about: str = ""
    ) -> Response:
        await record_authorization_error(self.oauth, request, request.state.parameters, error, description, about)
        answer = {"error": error, "error_description": description}
        if request.is_explained:
            answer["error_uri"] = self.oauth.refusals.error_uri(request.request_id)
        return self._send(request, return_address, **answer)

    def _send(self, request: HubRequest, return_address: ReturnAddress, **answer: str) -> Response:
        if return_address.response_mode == FORM_POST:
            parameters, host = return_address.parameters(**answer), shown_host(return_address.redirect_uri)
            return self.pages.page(
                request, "oauth/form_post.html", return_address=return_address, parameters=parameters, host=host
            )
        return RedirectResponse(return_address.address(**answer), 303)
