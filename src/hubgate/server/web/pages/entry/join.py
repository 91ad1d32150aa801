"""Creating an account: by open sign-up, by invitation, or as the first operator through the set-up link."""

from msgspec import Struct

from hubgate.server.access.caller import caller_of, visitor_of
from hubgate.server.accounts import signup
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.organizations.invitations import OpenedInvitation
from hubgate.server.accounts.signin import sign_in_new_user
from hubgate.server.edge.routes import Route, public
from hubgate.server.errors import FieldErrors, TooManyRequests
from hubgate.server.http.forms import Fields
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.web import cookies
from hubgate.server.web.local_path import continue_to, local_path
from hubgate.server.web.pages.entry.entry_route import NOTICE, entry_route
from hubgate.server.web.rendering import Pages

JOIN, _SETUP = "/join", "/setup/{secret}"
_TEMPLATE = "entry/join.html"


class JoinForm(Struct, frozen=True):
    """The values of the form, initially and as submitted."""

    username: str = ""
    email: str = ""
    next_page: str = "/"
    # The secret of the invitation, if any.
    invitation: str = ""

    @classmethod
    def of(cls, fields: Fields) -> "JoinForm":
        username, email = fields.get("username").strip(), fields.get("email").strip()
        return cls(username, email, local_path(fields.get("next")), fields.get("invitation"))


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    return [*_join_routes(pages, accounts), *_setup_routes(pages, accounts)]


def _join_routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(request: HubRequest) -> Response:
        next_page = local_path(request.query().get("next", ""))
        if caller_of(request).person is not None:
            return pages.redirect(next_page)
        signup.require_open(accounts, None)
        return pages.page(request, _TEMPLATE, action=JOIN, form=JoinForm(next_page=next_page), opened=None)

    async def join(request: HubRequest) -> Response:
        form = JoinForm.of(request.form_fields)
        if caller_of(request).person is not None:
            return pages.redirect(form.next_page)
        opened = await signup.open_signup_invitation(accounts, form.invitation) if form.invitation else None
        invitation = opened.invitation if opened else None
        signup.require_open(accounts, invitation)
        try:
            password = request.form_fields.get("password")
            candidate = await signup.check_candidate(accounts, form.username, form.email, password)
            user = await signup.join(accounts, candidate, request.client_ip, invitation)
        except (FieldErrors, TooManyRequests) as error:
            return pages.show_errors(request, _TEMPLATE, error, "email", action=JOIN, form=form, opened=opened)
        if user is None or user.email_verified_at is None:
            return _check_your_mail(request, candidate.email, form.next_page)
        response = pages.redirect(form.next_page, f"Welcome, {user.name}.")
        cookies.set_session(response, pages.settings, await sign_in_new_user(accounts, user, visitor_of(request)))
        return response

    def _check_your_mail(request: HubRequest, email: str, next_page: str) -> Response:
        """Ask the visitor to check the mail, whether or not the address already has an account."""
        lines = [f"We sent an e-mail to {email}. Open the link in it, then sign in."]
        link = (continue_to("/login", next_page), "Sign in")
        return pages.page(request, NOTICE, title="Check your email.", lines=lines, link=link)

    return [
        entry_route("GET", JOIN, public(show), "Join", leaves_hub=True),
        entry_route("POST", JOIN, public(join), "Join", leaves_hub=True),
    ]


def _setup_routes(pages: Pages, accounts: Accounts) -> list[Route]:
    """The set-up link: the form for the first operator. Only one of several concurrent requests succeeds."""

    async def show(request: HubRequest) -> Response:
        secret = request.param("secret")
        await signup.require_setup_link(accounts, secret)
        return pages.page(request, _TEMPLATE, action=f"/setup/{secret}", form=JoinForm(), opened=None)

    async def create(request: HubRequest) -> Response:
        secret, form = request.param("secret"), JoinForm.of(request.form_fields)
        await signup.require_setup_link(accounts, secret)
        try:
            password = request.form_fields.get("password")
            candidate = await signup.check_candidate(accounts, form.username, form.email, password)
            operator = await signup.create_first_operator(accounts, candidate)
        except FieldErrors as error:
            return pages.show_errors(
                request, _TEMPLATE, error, "username", action=f"/setup/{secret}", form=form, opened=None
            )
        cookie = await sign_in_new_user(accounts, operator, visitor_of(request), caller_of(request).session)
        response = pages.redirect("/", "This hub is set up, and you are its operator.")
        cookies.set_session(response, pages.settings, cookie)
        return response

    return [
        entry_route("GET", _SETUP, public(show), "Set up the hub"),
        entry_route("POST", _SETUP, public(create), "Create the first operator"),
    ]


def show_invited(request: HubRequest, pages: Pages, secret: str, opened: OpenedInvitation) -> Response:
    """Show the form on the page of an invitation. An invitee of an organization returns to that page to accept."""
    next_page = f"/invitations/{secret}" if opened.organization else "/"
    form = JoinForm(email=opened.invitation.email or "", next_page=next_page, invitation=secret)
    return pages.page(request, _TEMPLATE, action=JOIN, form=form, opened=opened)
