"""`/api/settings/sessions`: the browsers in which a user is signed in."""

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.sessions import browser_sessions
from hubgate.server.accounts.sessions.model import Session
from hubgate.server.clock import iso
from hubgate.server.edge.routes import Route, own
from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.paging import parse_page
from hubgate.server.web.api.answers import NO_TOKEN
from hubgate.server.web.api.listing import PAGING, page_response

PATH = "/api/settings/sessions"
_READ, _WRITE = Action.ACCOUNT_READ_SETTINGS, Action.ACCOUNT_WRITE_SETTINGS


class SessionInfo(msgspec.Struct, rename="camel"):
    """A browser in which the user is signed in, without its cookie."""

    id: str
    created_at: str
    last_used_at: str
    ip: str
    user_agent: str


def describe(session: Session) -> SessionInfo:
    return SessionInfo(
        id=session.id,
        created_at=iso(session.created_at),
        last_used_at=iso(session.last_used_at),
        ip=session.ip,
        user_agent=session.user_agent,
    )


def routes(accounts: Accounts) -> list[Route]:
    async def list_all(request: HubRequest, caller: Caller) -> Response:
        found = await browser_sessions.page_of_user(
            accounts, caller.user.id, parse_page(request.query(), browser_sessions.CURSOR)
        )
        return page_response(request, accounts.base_url, found, describe)

    async def end(request: HubRequest, caller: Caller) -> Response:
        if not await browser_sessions.end(accounts, caller.user.id, request.param("id")):
            raise NotFound("Session not found. It may have ended.")
        return Response(status_code=204)

    return [
        Route(
            "GET",
            PATH,
            own(_READ, list_all),
            Surface.API,
            "Where you are signed in",
            query=PAGING,
            answers={200: ("Newest first.", list[SessionInfo]), **NO_TOKEN},
        ),
        Route(
            "DELETE",
            f"{PATH}/{{id}}",
            own(_WRITE, end),
            Surface.API,
            "Sign a browser out",
            answers={204: ("The browser is signed out.", None), **NO_TOKEN, 404: ("Session not found.", None)},
        ),
    ]
