"""Exports the data that the hub stores about a user; credentials are listed without their secrets."""

from typing import Any

from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Membership, Person, User
from hubgate.server.accounts.names import name_key
from hubgate.server.accounts.organizations import invitations
from hubgate.server.accounts.organizations.model import Invitation
from hubgate.server.accounts.sessions import browsers
from hubgate.server.accounts.sessions import wire as sessions
from hubgate.server.accounts.tokens import personal
from hubgate.server.accounts.tokens import wire as tokens
from hubgate.server.clock import iso, iso_or_none


async def export(accounts: Accounts, person: Person) -> dict[str, Any]:
    user = person.user
    names = await accounts.db.read_long(lambda tx: store.names_of(tx, user.id))
    return {
        "user": _user(user) | {"formerNames": [name for name in names if name != name_key(user.name)]},
        "organizations": [_membership(membership) for membership in person.memberships],
        "invitations": [_invitation(*each) for each in await invitations.of_user(accounts, user)],
        "tokens": [tokens.described(token) for token in await personal.of_user(accounts, user.id)],
        "sessions": [sessions.described(session) for session in await browsers.of_user(accounts, user.id)],
    }


def _user(user: User) -> dict[str, Any]:
    return {
        "id": user.id,
        "name": user.name,
        "fullname": user.fullname,
        "email": user.email,
        "emailVerifiedAt": iso_or_none(user.email_verified_at),
        "website": user.website,
        "operator": bool(user.operator),
        "canPay": bool(user.can_pay),
        "createdAt": iso(user.created_at),
    }


def _membership(membership: Membership) -> dict[str, Any]:
    organization = membership.organization
    return {"id": organization.id, "name": organization.name, "role": membership.role.label}


def _invitation(invitation: Invitation, organization: str) -> dict[str, Any]:
    return {
        "id": invitation.id,
        "organization": organization,
        "role": invitation.role.label,
        "createdAt": iso(invitation.created_at),
        "expiresAt": iso(invitation.expires_at),
    }
