"""`GET /api/whoami-v2`: the token's user, as far as the token's scopes allow."""

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.access.resource import Account, Organization
from hubgate.server.accounts.model import Membership
from hubgate.server.accounts.tokens.wire import FineGrained, fine_grained
from hubgate.server.clock import iso
from hubgate.server.edge.routes import Route, own
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.web.api.answers import NO_TOKEN
from hubgate.server.web.avatars import avatar_url

BILLING_MODE = "postpaid"


class Org(msgspec.Struct, rename="camel"):
    type: Literal["org"]
    id: str
    name: str
    fullname: str
    email: str | None
    avatar_url: str
    role_in_org: str
    plan: str
    period_end: int | None = None
    can_pay: bool | UnsetType = UNSET
    billing_mode: str | UnsetType = UNSET


class AccessToken(msgspec.Struct, rename="camel"):
    display_name: str
    role: str
    created_at: str
    fine_grained: FineGrained | UnsetType = UNSET


class Auth(msgspec.Struct, rename="camel"):
    type: str
    access_token: AccessToken | UnsetType = UNSET
    expires_at: str | UnsetType = UNSET


class WhoAmI(msgspec.Struct, rename="camel"):
    type: Literal["user"]
    id: str
    name: str
    orgs: list[Org]
    auth: Auth
    fullname: str | UnsetType = UNSET
    email: str | UnsetType = UNSET
    email_verified: bool | UnsetType = UNSET
    can_pay: bool | UnsetType = UNSET
    billing_mode: str | UnsetType = UNSET
    period_end: int | UnsetType | None = UNSET
    is_pro: bool | UnsetType = UNSET
    avatar_url: str | UnsetType = UNSET


def routes() -> list[Route]:
    return [
        Route(
            "GET",
            "/api/whoami-v2",
            own(Action.ACCOUNT_IDENTIFY, _whoami),
            Surface.API,
            "Who the token's user is",
            answers={
                200: ("The user, within the token's scopes.", WhoAmI),
                **NO_TOKEN,
            },
        )
    ]


async def _whoami(_: HubRequest, caller: Caller) -> JsonResponse:
    return JsonResponse(describe(caller))


def describe(caller: Caller) -> WhoAmI:
    user, identity = caller.user, caller.identity
    account = Account(user.id)
    shown = WhoAmI(
        type="user",
        id=user.id,
        name=user.name,
        orgs=[_org(membership, identity) for membership in _covered_memberships(caller)],
        auth=_auth(caller),
    )
    if decide(identity, Action.ACCOUNT_READ_PROFILE, account).allowed:
        shown.fullname, shown.avatar_url, shown.is_pro = user.display_name, avatar_url(user.id), False
    if decide(identity, Action.ACCOUNT_READ_EMAIL, account).allowed:
        shown.email, shown.email_verified = user.email, user.email_verified_at is not None
    if decide(identity, Action.ACCOUNT_READ_BILLING, account).allowed:
        shown.can_pay, shown.billing_mode, shown.period_end = bool(user.can_pay), BILLING_MODE, None
    return shown


def _covered_memberships(caller: Caller) -> list[Membership]:
    """Return the memberships a token covers: those granted to an app or chosen for a fine-grained token, or the
    organization of an exchanged token.
    """
    role_in = caller.identity.role_in
    return [m for m in caller.signed_in_person.memberships if role_in(m.organization.id) is not None]


def _org(membership: Membership, identity: Identity) -> Org:
    organization = membership.organization
    shown = Org(
        type="org",
        id=organization.id,
        name=organization.name,
        fullname=organization.display_name,
        email=None,
        avatar_url=avatar_url(organization.id),
        role_in_org=membership.role.label,
        plan=organization.plan,
    )
    if decide(identity, Action.ORG_READ_BILLING, Organization(organization.id)).allowed:
        shown.can_pay, shown.billing_mode = bool(organization.can_pay), BILLING_MODE
    return shown


def _auth(caller: Caller) -> Auth:
    token = caller.token
    if token is not None:
        shown = AccessToken(token.name, token.role.value, iso(token.created_at), fine_grained(token))
        expires_at = UNSET if token.expires_at is None else iso(token.expires_at)
        return Auth("access_token", access_token=shown, expires_at=expires_at)
    return Auth("oauth", expires_at=iso(caller.app.expires_at) if caller.app else UNSET)
