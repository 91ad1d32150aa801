"""Creating an account, with or without an invitation."""

from dataclasses import dataclass

from starlette.responses import Response

from hubgate.server.access.caller import caller_of, visitor_of
from hubgate.server.accounts import signup
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.organizations.invitations import Opened
from hubgate.server.accounts.signin import admit
from hubgate.server.edge.routes import Route, public
from hubgate.server.errors import FieldErrors, TooManyRequests
from hubgate.server.http.forms import Fields
from hubgate.server.http.request import HubRequest
from hubgate.server.web import session_cookie
from hubgate.server.web.local_path import continue_to, local_path
from hubgate.server.web.pages.entry.page import NOTICE, door
from hubgate.server.web.rendering import Pages

PATH = "/join"
FORM = "doors/join.html"


@dataclass(frozen=True)
class Given:
    """The values in the form: initial, and as submitted."""

    username: str = ""
    email: str = ""
    next_page: str = "/"
    # The secret of the invitation, if any.
    invitation: str = ""

    @classmethod
    def of(cls, form: Fields) -> "Given":
        return cls(
            form.get("username").strip(),
            form.get("email").strip(),
            local_path(form.get("next")),
            form.get("invitation"),
        )


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(request: HubRequest) -> Response:
        next_page = local_path(request.query().get("next", ""))
        if caller_of(request).person is not None:
            return pages.redirect(next_page)
        signup.require_open(accounts, None)
        return pages.page(request, FORM, action=PATH, given=Given(next_page=next_page), opened=None)

    async def join(request: HubRequest) -> Response:
        given = Given.of(request.form_fields)
        if caller_of(request).person is not None:
            return pages.redirect(given.next_page)
        opened = await signup.open_to_join(accounts, given.invitation) if given.invitation else None
        invitation = opened.invitation if opened else None
        signup.require_open(accounts, invitation)
        try:
            password = request.form_fields.get("password")
            candidate = await signup.check_candidate(accounts, given.username, given.email, password)
            user = await signup.join(accounts, candidate, request.client_ip, invitation)
        except (FieldErrors, TooManyRequests) as error:
            return pages.show_errors(request, FORM, error, "email", action=PATH, given=given, opened=opened)
        if user is None or user.email_verified_at is None:
            return _check_your_mail(request, candidate.email, given.next_page)
        response = pages.redirect(given.next_page, f"Welcome, {user.name}.")
        session_cookie.remember(response, pages.settings, await admit(accounts, user, visitor_of(request)))
        return response

    def _check_your_mail(request: HubRequest, email: str, next_page: str) -> Response:
        """The response is the same whether or not the address already has an account."""
        lines = [f"We wrote to {email}. Open the link in that mail, then sign in."]
        link = (continue_to("/login", next_page), "Sign in")
        return pages.page(request, NOTICE, title="Check your mail.", lines=lines, link=link)

    return [
        door("GET", PATH, public(show), "Join", leads_away=True),
        door("POST", PATH, public(join), "Join", leads_away=True),
    ]


def show_invited(request: HubRequest, pages: Pages, secret: str, opened: Opened) -> Response:
    """Show the form on the page of an invitation. For an organization, the user returns there to accept it."""
    next_page = f"/invitations/{secret}" if opened.organization else "/"
    given = Given(email=opened.invitation.email or "", next_page=next_page, invitation=secret)
    return pages.page(request, FORM, action=PATH, given=given, opened=opened)
