"""The members of an organization: listed for members, changed by admins."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from hubgate.server.access import resource
from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of, caller_of
from hubgate.server.access.policy import decide
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.emails import email_key
from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import members
from hubgate.server.accounts.organizations.model import Member
from hubgate.server.accounts.roles import Role
from hubgate.server.edge.routes import KIB, Check, Endpoint, Locator, Query, Route, Target
from hubgate.server.errors import Unprocessable
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.paging import parse_page
from hubgate.server.web.account_paths import organization_locator, organization_named, organization_route, user_named
from hubgate.server.web.api import listing
from hubgate.server.web.avatars import avatar_url

_LIST = "/api/organizations/{name}/members"
_MEMBER = _LIST + "/{user}"
_LAST_ADMIN = "The member is the last admin."


class OrganizationMember(msgspec.Struct, rename="camel"):
    id: str = msgspec.field(name="_id")
    user: str
    fullname: str
    avatar_url: str
    type: Literal["user"] = "user"
    is_pro: bool = False
    # For admins only.
    role: str | UnsetType = UNSET
    verified_email: str | UnsetType = UNSET


class MemberRole(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    role: Literal["read", "contributor", "write", "admin"]
    resource_groups: list[Any] = []


class MemberChanged(msgspec.Struct):
    success: bool


def routes(accounts: Accounts) -> list[Route]:
    async def list_members(request: HubRequest, organization: Organization) -> JsonResponse:
        query, identity = request.query(), caller_of(request).identity
        email = query.get("email", "")
        for_admin = decide(identity, Action.ORG_READ_SETTINGS, resource.Organization(organization.id))
        page_request = parse_page(query, members.CURSOR)
        page = await members.list_members(
            accounts, organization, page_request, query.get("search", ""), email_key(email)
        )
        return listing.page_response(
            request, accounts.base_url, page, lambda member: _describe(member, for_admin=for_admin.allowed)
        )

    async def set_role(request: HubRequest, organization: Organization) -> JsonResponse:
        changes = await request.read_json(MemberRole)
        if changes.resource_groups:
            # If groups were ignored, a member meant to be limited to a few repos would get access to all.
            raise Unprocessable("resourceGroups: not supported. A role applies to the whole organization.")
        user = await user_named(accounts, request.param("user"))
        await members.change_role(accounts, organization, user, Role.parse(changes.role), actor_of(request))
        return JsonResponse(MemberChanged(True))

    async def member_to_remove(request: HubRequest) -> Target[tuple[Organization, User]]:
        organization = await organization_named(accounts, request, Surface.API)
        user = await user_named(accounts, request.param("user"))
        if user.id == caller_of(request).identity.user_id:
            # Every member may leave, with any role.
            return Target((organization, user), resource.Account(user.id), Action.ACCOUNT_WRITE_SETTINGS)
        return Target((organization, user), resource.Organization(organization.id))

    async def remove(request: HubRequest, membership: tuple[Organization, User]) -> JsonResponse:
        await members.remove(accounts, *membership, actor_of(request))
        return JsonResponse(MemberChanged(True))

    list_target = organization_locator(accounts, _LIST, Surface.API, further_checks=_search_checks)
    removal = Locator((resource.Organization, resource.Account), member_to_remove)
    return [
        Route(
            "GET",
            _LIST,
            Endpoint(Action.ORG_READ_MEMBERS, list_target, list_members, (Action.ORG_READ_SETTINGS,)),
            Surface.API,
            "The members of an organization, by name",
            query=(
                Query("search", "Part of a name or full name."),
                Query("email", "A complete verified e-mail address; only for admins."),
                *listing.PAGING,
            ),
            answers={
                200: ("One page; admins also see role and verified address.", list[OrganizationMember]),
                307: ("The organization was renamed: follow the redirect.", None),
            },
        ),
        organization_route(
            accounts,
            "PUT",
            _MEMBER + "/role",
            set_role,
            Surface.API,
            Action.ORG_WRITE_MEMBERS,
            "Change a member's role",
            body=MemberRole,
            body_cap=16 * KIB,
            answers={200: ("The role applies from the next request.", MemberChanged), 409: (_LAST_ADMIN, None)},
        ),
        Route(
            "DELETE",
            _MEMBER,
            Endpoint(Action.ORG_WRITE_MEMBERS, removal, remove, (Action.ACCOUNT_WRITE_SETTINGS,)),
            Surface.API,
            "Remove a member, or leave",
            answers={200: ("The user is no longer a member.", MemberChanged), 409: (_LAST_ADMIN, None)},
        ),
    ]


def _search_checks(request: HubRequest, organization: Organization) -> tuple[tuple[Check, ...], ...]:
    """Require admin rights for a search by e-mail address."""
    by_email = request.query().get("email")
    return ((Check(Action.ORG_READ_SETTINGS, resource.Organization(organization.id)),),) if by_email else ()


def _describe(member: Member, *, for_admin: bool) -> OrganizationMember:
    user = member.user
    shown = OrganizationMember(user.id, user.name, user.display_name, avatar_url(user.id))
    if for_admin:
        shown.role = member.role.label
        if user.email_verified_at is not None:
            shown.verified_email = user.email
    return shown
