"""The user's organizations, roles and invitations, and leaving an organization."""

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, actor_of
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Membership, Person
from hubgate.server.accounts.names import name_key
from hubgate.server.accounts.organizations import invitations, members
from hubgate.server.edge.routes import KIB, Handler, Route, own
from hubgate.server.errors import Conflict, NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.web.pages.listing import first_rows, list_page
from hubgate.server.web.rendering import Pages

PATH = "/settings/organizations"
_LEAVE = "settings/leave.html"
_READ, _WRITE = Action.ACCOUNT_READ_SETTINGS, Action.ACCOUNT_WRITE_SETTINGS


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(request: HubRequest, caller: Caller) -> Response:
        person = caller.signed_in_person
        invited, more_invited = first_rows(await invitations.of_user(accounts, person.user))
        return pages.page(
            request,
            "settings/organizations.html",
            section=PATH,
            shown=list_page(request, person.memberships),
            invited=invited,
            more_invited=more_invited,
        )

    async def accept(request: HubRequest, caller: Caller) -> Response:
        user = caller.user
        invitation = await invitations.find_own(accounts, user, request.param("id"))
        await invitations.accept(accounts, user, invitation, actor_of(request))
        return pages.redirect(PATH, "You are now a member.")

    async def decline(request: HubRequest, caller: Caller) -> Response:
        await invitations.decline(accounts, await invitations.find_own(accounts, caller.user, request.param("id")))
        return pages.redirect(PATH, "Invitation declined.")

    async def confirm_leave(request: HubRequest, caller: Caller) -> Response:
        membership = _membership(caller.signed_in_person, request.param("name"))
        return pages.page(request, _LEAVE, section=PATH, membership=membership)

    async def leave(request: HubRequest, caller: Caller) -> Response:
        person = caller.signed_in_person
        membership = _membership(person, request.param("name"))
        try:
            await members.remove(accounts, membership.organization, person.user, actor_of(request))
        except Conflict as error:
            return pages.show_errors(request, _LEAVE, error, "leave", section=PATH, membership=membership)
        return pages.redirect(PATH, f"You left {membership.organization.name}.")

    def page(method: str, path: str, handler: Handler[Caller], action: Action, summary: str) -> Route:
        return Route(method, path, own(action, handler), Surface.PAGE, summary, body_cap=16 * KIB)

    at, invitation = f"{PATH}/{{name}}/leave", f"{PATH}/invitations/{{id}}"
    return [
        page("GET", PATH, show, _READ, "Your organizations and invitations"),
        page("POST", f"{invitation}/accept", accept, _WRITE, "Accept an invitation"),
        page("POST", f"{invitation}/decline", decline, _WRITE, "Decline an invitation"),
        page("GET", at, confirm_leave, _WRITE, "Confirm leaving an organization"),
        page("POST", at, leave, _WRITE, "Leave an organization"),
    ]


def _membership(person: Person, name: str) -> Membership:
    for membership in person.memberships:
        if name_key(membership.organization.name) == name_key(name):
            return membership
    raise NotFound("You are not a member of this organization.")
