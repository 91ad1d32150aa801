"""Sessions: the signed-in browsers, and signing them out."""

from starlette.responses import Response

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.sessions import browsers
from hubgate.server.edge.routes import KIB, Route, own
from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.web import session_cookie
from hubgate.server.web.pages.settings.paged import shown_of
from hubgate.server.web.rendering import Pages
from hubgate.server.web.user_agents import in_words

PATH = "/settings/sessions"
_READ, _WRITE = Action.ACCOUNT_READ_SETTINGS, Action.ACCOUNT_WRITE_SETTINGS


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(request: HubRequest, caller: Caller) -> Response:
        shown = shown_of(request, await browsers.of_user(accounts, caller.user.id))
        own_id = caller.session.id if caller.session else ""
        return pages.page(
            request, "settings/sessions.html", section=PATH, shown=shown, own_id=own_id, in_words=in_words
        )

    async def end(request: HubRequest, caller: Caller) -> Response:
        session_id = request.param("id")
        if not await browsers.end(accounts, caller.user.id, session_id):
            raise NotFound("There is no such session. It may have ended.")
        if caller.session is None or caller.session.id != session_id:
            return pages.redirect(PATH, "Session ended.")
        response = pages.redirect("/", "You are signed out.")
        session_cookie.forget(response, pages.settings)
        return response

    async def end_others(_: HubRequest, caller: Caller) -> Response:
        ended = await browsers.end_others(accounts, caller.user.id, caller.session.id if caller.session else "")
        return pages.redirect(PATH, f"{ended} {'session' if ended == 1 else 'sessions'} ended.")

    page, cap = Surface.PAGE, 16 * KIB
    return [
        Route("GET", PATH, own(_READ, show), page, "Where you are signed in"),
        Route("POST", f"{PATH}/end-others", own(_WRITE, end_others), page, "Sign all other browsers out", body_cap=cap),
        Route("POST", f"{PATH}/{{id}}/end", own(_WRITE, end), page, "Sign a browser out", body_cap=cap),
    ]
