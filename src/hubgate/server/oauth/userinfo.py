"""`GET|POST /oauth/userinfo`: who the token's user is, and every organization they belong to."""

from typing import Any

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, caller_of
from hubgate.server.access.identity import Identity
from hubgate.server.accounts.model import Membership
from hubgate.server.errors import Unauthorized
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.routes import Route
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.tokens.idtoken import about

BILLING_MODE = "postpaid"


def routes(base_url: str) -> list[Route]:
    async def userinfo(request: HubRequest) -> JsonResponse:
        caller = caller_of(request)
        if caller.app is None or caller.identity.lapsed:
            raise Unauthorized("Send an access token of an app.")
        return JsonResponse(claims(caller, base_url))

    return [
        Route(
            method,
            "/oauth/userinfo",
            userinfo,
            Surface.OAUTH,
            Action.ACCOUNT_IDENTIFY.rule.name,
            "Who the token's user is (OpenID Connect)",
            answers={
                200: ("Claims, as far as the token's scopes reach.", dict[str, Any]),
                401: ("No token of an app, or one that is no longer good.", None),
            },
        )
        for method in ("GET", "POST")
    ]


def claims(caller: Caller, base_url: str) -> dict[str, Any]:
    user, identity = caller.user, caller.identity
    organizations = [_organization(membership, identity, base_url) for membership in _listed(caller)]
    said: dict[str, Any] = {
        "sub": user.id,
        "isPro": False,
        # Twice under two names: each has its readers.
        "orgs": organizations,
        "organizations": organizations,
        **about(user, identity.scopes, base_url),
    }
    if "read-billing" in identity.scopes:
        said |= {"canPay": bool(user.can_pay), "billingMode": BILLING_MODE}
    return said


def _listed(caller: Caller) -> list[Membership]:
    """All of them, because an app needs an organization's id to ask for it; of an exchanged token only its own."""
    fence = caller.identity.fence
    return [m for m in caller.signed_in.memberships if fence is None or m.organization.id == fence]


def _organization(membership: Membership, identity: Identity, base_url: str) -> dict[str, Any]:
    organization = membership.organization
    said: dict[str, Any] = {
        "sub": organization.id,
        "name": organization.shown_name,
        "preferred_username": organization.name,
        "picture": f"{base_url}/avatars/{organization.id}.svg",
    }
    if identity.role_in(organization.id) is not None:
        said |= {"roleInOrg": membership.role.label}
        if organization.plan != "free":
            said["plan"] = organization.plan
        if "read-billing" in identity.scopes:
            said["canPay"] = bool(organization.can_pay)
    return said
