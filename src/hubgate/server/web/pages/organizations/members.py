"""The members of an organization: the list for members; roles, invitations and removal for admins."""

from typing import Any

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of, caller_of
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.emails import email_key
from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import invitations, members, store
from hubgate.server.accounts.roles import Role
from hubgate.server.edge.routes import KIB, Handler, Route
from hubgate.server.errors import Conflict, FieldErrors, NotFound, TooManyRequests, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.web.account_paths import address_of, organization_route, user_named
from hubgate.server.web.pages.listing import ListQuery, return_address
from hubgate.server.web.rendering import Pages

PATH = "/organizations/{name}/settings/members"
_ROSTER, _REMOVE = "/organizations/{name}/members", PATH + "/{user}/remove"
_PAGE, _REMOVAL_PAGE = "organization/members.html", "organization/remove_member.html"
_CHANGE = Action.ORG_WRITE_MEMBERS


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    return [
        *_member_list_routes(pages, accounts),
        *MembersPage(pages, accounts).routes(),
        *_removal_routes(pages, accounts),
    ]


def _member_list_routes(pages: Pages, accounts: Accounts) -> list[Route]:
    """The list of members as shown to every member."""

    async def show(request: HubRequest, organization: Organization) -> Response:
        here = address_of(_ROSTER, organization.name)
        query = ListQuery(request.query(), here)
        found = await members.list_members(accounts, organization, query.page(members.CURSOR), query.search)
        return pages.page(
            request,
            "organization/roster.html",
            organization=organization,
            members=found.items,
            **query.template_values(found.next_cursor),
            path=here,
        )

    action = Action.ORG_READ_MEMBERS
    return [organization_route(accounts, "GET", _ROSTER, show, Surface.PAGE, action, "An organization's members")]


class MembersPage:
    """The page for admins: list, roles, invitations."""

    def __init__(self, pages: Pages, accounts: Accounts) -> None:
        self._accounts = accounts
        self._pages = pages

    def routes(self) -> list[Route]:
        return [
            self._route("GET", PATH, self.show, Action.ORG_READ_SETTINGS, "An organization's members, for its admins"),
            self._route("POST", PATH, self.invite, _CHANGE, "Invite someone"),
            self._route("POST", PATH + "/{user}/role", self.change_role, _CHANGE, "Change a member's role"),
            self._route(
                "POST",
                "/organizations/{name}/settings/invitations/{id}/withdraw",
                self.withdraw,
                _CHANGE,
                "Withdraw an invitation",
            ),
        ]

    def _route(self, method: str, path: str, handler: Handler[Organization], action: Action, summary: str) -> Route:
        surface, cap = Surface.PAGE, 16 * KIB
        return organization_route(self._accounts, method, path, handler, surface, action, summary, body_cap=cap)

    async def show(self, request: HubRequest, organization: Organization) -> Response:
        return self._pages.page(request, _PAGE, **await self._values(request, organization))

    async def _values(self, request: HubRequest, organization: Organization, **submitted: str) -> dict[str, Any]:
        query, here = request.query(), address_of(PATH, organization.name)
        listed, invited = ListQuery(query, here), ListQuery(query, here, "invited")
        criteria = {"email": email_key(listed.search)} if "@" in listed.search else {"search": listed.search}
        found = await members.list_members(self._accounts, organization, listed.page(members.CURSOR), **criteria)
        waiting = await invitations.of_organization(self._accounts, organization, invited.page(invitations.CURSOR))
        return {
            "organization": organization,
            "section": here,
            "roles": [(role.label, role.label.capitalize()) for role in Role],
            "members": found.items,
            "invitations": waiting.items,
            **listed.template_values(found.next_cursor),
            "waiting": invited.template_values(waiting.next_cursor),
            "invitee": "",
            "role": Role.READ.label,
            **submitted,
        }

    async def invite(self, request: HubRequest, organization: Organization) -> Response:
        invitee, role = request.form_fields.get("invitee").strip(), request.form_fields.get("role")
        try:
            await invitations.invite(self._accounts, organization, invitee, _role(role), actor_of(request))
        except (FieldErrors, TooManyRequests) as error:
            values = await self._values(request, organization, invitee=invitee, role=role)
            return self._pages.show_errors(request, _PAGE, error, "invitee", **values)
        return self._pages.redirect(address_of(PATH, organization.name), f"Invited {invitee}. An e-mail is on its way.")

    async def change_role(self, request: HubRequest, organization: Organization) -> Response:
        user = await user_named(self._accounts, request.param("user"))
        role = _role(request.form_fields.get("role"))
        try:
            await members.change_role(self._accounts, organization, user, role, actor_of(request))
        except Conflict as error:
            values = await self._values(request, organization)
            return self._pages.show_errors(request, _PAGE, error, f"role-{user.name}", **values)
        if user.id == caller_of(request).user.id and role is not Role.ADMIN:
            # The user is no longer an admin and cannot see this page.
            return self._pages.redirect(
                f"/{organization.name}", f"Your role in {organization.name} is now {role.label}."
            )
        back = return_address(request, address_of(PATH, organization.name))
        return self._pages.redirect(back, f"{user.name} now has the role {role.label}.")

    async def withdraw(self, request: HubRequest, organization: Organization) -> Response:
        await invitations.withdraw(self._accounts, organization, request.param("id"), actor_of(request))
        back = return_address(request, address_of(PATH, organization.name))
        return self._pages.redirect(back, "Invitation withdrawn. Its link no longer works.")


def _removal_routes(pages: Pages, accounts: Accounts) -> list[Route]:
    def values(organization: Organization, user: User) -> dict[str, Any]:
        return {"organization": organization, "section": address_of(PATH, organization.name), "user": user}

    async def show(request: HubRequest, organization: Organization) -> Response:
        user = await user_named(accounts, request.param("user"))
        if await store.role_of(accounts.db, organization.id, user.id) is None:
            raise NotFound(f"{user.name} is not a member of {organization.name}.")
        return pages.page(request, _REMOVAL_PAGE, **values(organization, user))

    async def remove(request: HubRequest, organization: Organization) -> Response:
        user = await user_named(accounts, request.param("user"))
        try:
            await members.remove(accounts, organization, user, actor_of(request))
        except Conflict as error:
            return pages.show_errors(request, _REMOVAL_PAGE, error, "remove", **values(organization, user))
        if user.id == caller_of(request).user.id:
            # The user is no longer a member and cannot see the members page.
            return pages.redirect(f"/{organization.name}", f"You left {organization.name}.")
        return pages.redirect(address_of(PATH, organization.name), f"Removed {user.name}.")

    summary = "Remove a member"
    return [
        organization_route(accounts, "GET", _REMOVE, show, Surface.PAGE, _CHANGE, summary),
        organization_route(accounts, "POST", _REMOVE, remove, Surface.PAGE, _CHANGE, summary, body_cap=16 * KIB),
    ]


def _role(label: str) -> Role:
    try:
        return Role.parse(label)
    except ValueError:
        raise Unprocessable(f"role must be one of {', '.join(role.label for role in Role)}.") from None
