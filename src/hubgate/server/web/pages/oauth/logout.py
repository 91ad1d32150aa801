"""`GET|POST /oauth/logout`: an app asks to sign the user out of the hub (OpenID Connect RP-Initiated Logout).

The user always confirms on a page of the hub: otherwise any site could sign users out (attack O85).
"""

from urllib.parse import urlencode

from msgspec import Struct

from hubgate.server.access.caller import caller_of
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.sessions import browser_sessions
from hubgate.server.edge.routes import KIB, PublicHandler, Route, public
from hubgate.server.http.csrf import CSRF_FIELD, Csrf
from hubgate.server.http.forms import Fields
from hubgate.server.http.intake import LONGEST_TARGET
from hubgate.server.http.request import FORM_TYPE, HubRequest
from hubgate.server.http.responses import RedirectResponse, Response
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.explain.recording import record_logout_error
from hubgate.server.oauth.logout.request import PARAMETERS, LogoutError, LogoutRequest, parse, too_long
from hubgate.server.oauth.redirects import is_web, shown_host
from hubgate.server.web import cookies
from hubgate.server.web.rendering import Pages
from hubgate.server.web.untrusted_text import display_name

PATH = "/oauth/logout"
SIGNED_OUT = "You are signed out."

Pairs = list[tuple[str, str]]


def routes(pages: Pages, accounts: Accounts, oauth: OAuth, csrf: Csrf) -> list[Route]:
    page = _Logout(pages, accounts, oauth, csrf)
    return [_route("GET", page.show), _route("POST", page.decide)]


def _route(method: str, handler: PublicHandler) -> Route:
    return Route(
        method,
        PATH,
        public(handler),
        Surface.PAGE,
        "Sign a user out, for an app",
        body_cap=64 * KIB,
        # Checked by the handler: without our CSRF field, a POST only leads to the page.
        csrf=False,
        leaves_hub=True,
        secret_address=True,
    )


class _Logout(Struct, frozen=True):
    pages: Pages
    accounts: Accounts
    oauth: OAuth
    csrf: Csrf

    async def show(self, request: HubRequest) -> Response:
        pairs = request.query_fields().pairs
        wanted = await self._parse(request, pairs)
        if caller_of(request).session is None:
            return self._continue(wanted)
        app = wanted.app
        homepage = app.homepage if app and is_web(app.homepage) else ""
        return self.pages.page(
            request,
            "oauth/logout.html",
            action=_address(pairs),
            app_name=display_name(app.name).strip() or app.client_id if app else "",
            host=shown_host(wanted.target) if wanted.target else "",
            homepage=homepage,
            homepage_host=shown_host(homepage),
        )

    async def decide(self, request: HubRequest) -> Response:
        """Handle the confirmation, or a request that an app sends as POST."""
        form = await request.read_form() if request.content_type == FORM_TYPE else Fields([])
        pairs = request.query_fields().pairs + [pair for pair in form.pairs if pair[0] != CSRF_FIELD]
        session = caller_of(request).session
        if not form.get(CSRF_FIELD) or session is None:
            # From an app's page the browser withheld our cookie (SameSite). A GET will include it.
            address = _address(pairs)
            if len(address) > LONGEST_TARGET:
                raise await self._recorded(request, pairs, too_long(pairs))
            return RedirectResponse(address, 303)
        self.csrf.check(request, form.get(CSRF_FIELD))
        wanted = await self._parse(request, pairs)
        await browser_sessions.end(self.accounts, session.user_id, session.id)
        response = self._continue(wanted)
        cookies.clear_session(response, self.pages.settings)
        return response

    async def _parse(self, request: HubRequest, pairs: Pairs) -> LogoutRequest:
        try:
            return await parse(self.oauth, pairs, request.client_ip)
        except LogoutError as error:
            raise await self._recorded(request, pairs, error) from error

    async def _recorded(self, request: HubRequest, pairs: Pairs, error: LogoutError) -> LogoutError:
        await record_logout_error(self.oauth, request, pairs, error)
        return error

    def _continue(self, wanted: LogoutRequest) -> Response:
        return RedirectResponse(wanted.target, 303) if wanted.target else self.pages.redirect("/", SIGNED_OUT)


def _address(pairs: Pairs) -> str:
    """The address of this page with only the known parameters."""
    known = [pair for pair in pairs if pair[0] in PARAMETERS]
    return f"{PATH}?{urlencode(known)}" if known else PATH
