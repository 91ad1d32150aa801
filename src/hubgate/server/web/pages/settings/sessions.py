"""Sessions: the browsers that are signed in, and signing them out."""

from starlette.responses import Response

from hubgate.server.access.actions import Action
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.sessions import browsers
from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.routes import KIB, Route
from hubgate.server.http.surface import Surface
from hubgate.server.web import session_cookie
from hubgate.server.web.own_account import require_own
from hubgate.server.web.pages.settings.paged import shown_of
from hubgate.server.web.rendering import Pages
from hubgate.server.web.user_agents import in_words

PATH = "/settings/sessions"
_READ, _WRITE = Action.ACCOUNT_READ_SETTINGS, Action.ACCOUNT_WRITE_SETTINGS


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(request: HubRequest) -> Response:
        caller = require_own(request, _READ)
        shown = shown_of(request, await browsers.of_user(accounts, caller.user.id))
        own_id = caller.session.id if caller.session else ""
        return pages.page(
            request, "settings/sessions.html", section=PATH, shown=shown, own_id=own_id, in_words=in_words
        )

    async def end(request: HubRequest) -> Response:
        caller, session_id = require_own(request, _WRITE), request.param("id")
        if not await browsers.end(accounts, caller.user.id, session_id):
            raise NotFound("There is no such session. It may have ended.")
        if caller.session is None or caller.session.id != session_id:
            return pages.see(PATH, "Session ended.")
        response = pages.see("/", "You are signed out.")
        session_cookie.forget(response, pages.settings)
        return response

    async def end_others(request: HubRequest) -> Response:
        caller = require_own(request, _WRITE)
        ended = await browsers.end_others(accounts, caller.user.id, caller.session.id if caller.session else "")
        return pages.see(PATH, f"{ended} {'session' if ended == 1 else 'sessions'} ended.")

    page, read, write, cap = Surface.PAGE, _READ.rule.name, _WRITE.rule.name, 16 * KIB
    return [
        Route("GET", PATH, show, page, read, "Where you are signed in"),
        Route("POST", f"{PATH}/end-others", end_others, page, write, "Sign all other browsers out", body_cap=cap),
        Route("POST", f"{PATH}/{{id}}/end", end, page, write, "Sign a browser out", body_cap=cap),
    ]
