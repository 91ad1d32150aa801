"""The link of an invitation: accept or decline it, or sign in or join first."""

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, actor_of, caller_of
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.organizations import invitations
from hubgate.server.accounts.organizations.invitations import OpenedInvitation
from hubgate.server.edge.routes import Route, own, public
from hubgate.server.errors import NotFound, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.web.local_path import continue_to
from hubgate.server.web.pages.entry.entry_route import NOTICE, entry_route
from hubgate.server.web.pages.entry.join import show_invited
from hubgate.server.web.rendering import Pages

PATH = "/invitations/{secret}"
_PAGE = "entry/invitation.html"


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(request: HubRequest) -> Response:
        secret, person = request.param("secret"), caller_of(request).person
        opened = await invitations.open_link(accounts, secret)
        if person is None:
            return _show_to_visitor(request, secret, opened)
        if opened.organization is None:
            return pages.redirect("/", "You already have an account.")
        invitations.require_invitee(opened.invitation, person.user)
        return pages.page(request, _PAGE, opened=opened)

    def _show_to_visitor(request: HubRequest, secret: str, opened: OpenedInvitation) -> Response:
        if opened.invitation.email is not None and accounts.signup != "closed":
            return show_invited(request, pages, secret, opened)
        link = (continue_to("/login", f"/invitations/{secret}"), "Sign in")
        if opened.organization is None:
            lines = ["This hub does not accept new accounts. Contact the operator."]
        else:
            role = opened.invitation.role.label
            lines = [
                f"{opened.organization.name} invites you to join with the role {role}. Sign in to accept or decline."
            ]
            if opened.invitation.email is not None:
                lines.append("No account? This hub does not accept new accounts. Contact the operator.")
        return pages.page(request, NOTICE, title="You are invited", lines=lines, link=link)

    async def decide(request: HubRequest, caller: Caller) -> Response:
        opened = await invitations.open_link(accounts, request.param("secret"))
        invitations.require_invitee(opened.invitation, caller.user)
        decision = request.form_fields.get("decision")
        if decision not in ("accept", "decline"):
            raise Unprocessable("Accept or decline.")
        if opened.organization is None:
            raise NotFound(invitations.GONE)
        if decision == "decline":
            await invitations.decline(accounts, opened.invitation)
            return pages.redirect("/", f"You declined the invitation from {opened.organization.name}.")
        await invitations.accept(accounts, caller.user, opened.invitation, actor_of(request))
        return pages.redirect("/", f"You are now a member of {opened.organization.name}.")

    return [
        entry_route("GET", PATH, public(show), "Show an invitation"),
        entry_route("POST", PATH, own(Action.ACCOUNT_WRITE_SETTINGS, decide), "Accept or decline an invitation"),
    ]
