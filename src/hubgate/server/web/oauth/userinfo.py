"""`GET|POST /oauth/userinfo`: the token's user, and every organization the user belongs to.

For a token issued for other servers, the response identifies only the user, as the consent page states (attack O64).
"""

from collections.abc import Mapping
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, caller_of
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.access.resource import Account
from hubgate.server.accounts.model import Membership
from hubgate.server.edge.routes import KIB, Endpoint, Locator, Route, Target
from hubgate.server.errors import Unauthorized
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.claims import GROUPS_IN_USERINFO
from hubgate.server.oauth.tokens import idtoken
from hubgate.server.oauth.tokens.groups import group_names, visible_memberships
from hubgate.server.oauth.tokens.idtoken import user_claims

# Claims included for every token, and claims added by each scope.
ALWAYS = ("sub", "isPro", "orgs", "organizations")
OF_SCOPE: Mapping[str, tuple[str, ...]] = {**idtoken.CLAIMS_BY_SCOPE, "read-billing": ("canPay", "billingMode")}
# Fields of every organization, and fields added for organizations the user selected (canPay needs read-billing).
OF_ORGANIZATION = ("sub", "name", "preferred_username", "picture")
OF_SELECTED_ORGANIZATION = ("roleInOrg", "plan", "canPay", "securityRestrictions", "resourceGroups")


class UserinfoResourceGroup(msgspec.Struct):
    sub: str
    name: str
    role: str


class UserinfoOrganization(msgspec.Struct):
    sub: str
    name: str
    preferred_username: str
    picture: str
    role_in_org: str | UnsetType = msgspec.field(name="roleInOrg", default=UNSET)
    plan: str | UnsetType = UNSET
    can_pay: bool | UnsetType = msgspec.field(name="canPay", default=UNSET)
    security_restrictions: list[str] | UnsetType = msgspec.field(name="securityRestrictions", default=UNSET)
    resource_groups: list[UserinfoResourceGroup] | UnsetType = msgspec.field(name="resourceGroups", default=UNSET)


class Userinfo(msgspec.Struct):
    """`orgs` and `organizations` are the same list, for clients that read one or the other."""

    sub: str
    is_pro: bool = msgspec.field(name="isPro")
    orgs: list[UserinfoOrganization]
    organizations: list[UserinfoOrganization]
    name: str | UnsetType = UNSET
    preferred_username: str | UnsetType = UNSET
    profile: str | UnsetType = UNSET
    picture: str | UnsetType = UNSET
    website: str | UnsetType = UNSET
    email: str | UnsetType = UNSET
    email_verified: bool | UnsetType = UNSET
    can_pay: bool | UnsetType = msgspec.field(name="canPay", default=UNSET)
    billing_mode: Literal["postpaid"] | UnsetType = msgspec.field(name="billingMode", default=UNSET)
    # Only if the app requested it: names of organizations, with `:role` for those that the user granted to the app.
    groups: list[str] | UnsetType = UNSET


def routes(base_url: str) -> list[Route]:
    async def userinfo(_: HubRequest, caller: Caller) -> JsonResponse:
        return JsonResponse(claims(caller, base_url))

    return [
        Route(
            method,
            "/oauth/userinfo",
            Endpoint(Action.ACCOUNT_IDENTIFY, Locator((Account,), _app_user), userinfo),
            Surface.OAUTH,
            "Who the token's user is (OpenID Connect)",
            answers={
                200: ("The claims that the token's scopes allow.", Userinfo),
                401: ("The token is not an access token of an app, or is no longer valid.", None),
            },
            any_audience=True,
            accepts_body_token=method == "POST",
            body_cap=64 * KIB,
        )
        for method in ("GET", "POST")
    ]


async def _app_user(request: HubRequest) -> Target[Caller]:
    caller = caller_of(request)
    if caller.app is None or caller.identity.lapsed:
        raise Unauthorized("Send an access token of an app.")
    return Target(caller, Account(caller.user.id))


def claims(caller: Caller, base_url: str) -> Userinfo:
    user, identity = caller.user, caller.identity
    if caller.app is None or not caller.app.is_for_this_hub:
        return Userinfo(user.id, False, [], [], **user_claims(user, identity.scopes, base_url))
    organizations = [_organization(membership, identity, base_url) for membership in visible_memberships(caller)]
    info = Userinfo(user.id, False, organizations, organizations, **user_claims(user, identity.scopes, base_url))
    if decide(identity, Action.ACCOUNT_READ_BILLING, Account(user.id)).allowed:
        info.can_pay, info.billing_mode = bool(user.can_pay), "postpaid"
    groups = group_names(caller, GROUPS_IN_USERINFO)
    if groups is not None:
        info.groups = groups
    return info


def _organization(membership: Membership, identity: Identity, base_url: str) -> UserinfoOrganization:
    organization = membership.organization
    info = UserinfoOrganization(
        sub=organization.id,
        name=organization.display_name,
        preferred_username=organization.name,
        picture=f"{base_url}/avatars/{organization.id}.svg",
    )
    if identity.role_in(organization.id) is not None:
        info.role_in_org = membership.role.label
        # This hub has neither, but apps written for other hubs read both.
        info.security_restrictions, info.resource_groups = [], []
        if organization.plan != "free":
            info.plan = organization.plan
        if "read-billing" in identity.scopes_in(organization.id):
            info.can_pay = bool(organization.can_pay)
    return info
