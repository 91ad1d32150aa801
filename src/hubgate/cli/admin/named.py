"""Finds accounts by name, and describes them in a command's output."""

from typing import Any

from hubgate.server.accounts import store
from hubgate.server.accounts.model import Organization, User
from hubgate.server.clock import iso, iso_or_none
from hubgate.server.errors import Conflict, NotFound
from hubgate.server.resources import Hub


async def user(hub: Hub, name: str) -> User:
    found = await store.user_by_name(hub.db, name)
    if found is None:
        raise NotFound(f"There is no user {name}. See them all with: hubgate admin user list")
    return found


async def enabled_user(hub: Hub, name: str) -> User:
    found = await user(hub, name)
    if found.disabled_at is not None:
        raise Conflict(f"{found.name} is disabled. Run first: hubgate admin user enable {found.name}")
    return found


async def organization(hub: Hub, name: str) -> Organization:
    found = await store.organization_by_name(hub.db, name)
    if found is None:
        raise NotFound(f"There is no organization {name}. See them all with: hubgate admin org list")
    return found


def described_user(found: User) -> dict[str, Any]:
    return {
        "id": found.id,
        "name": found.name,
        "fullname": found.fullname,
        "email": found.email,
        "emailVerified": found.email_verified_at is not None,
        "operator": bool(found.operator),
        "canPay": bool(found.can_pay),
        "createdAt": iso(found.created_at),
        "disabledAt": iso_or_none(found.disabled_at),
    }


def described_organization(found: Organization) -> dict[str, Any]:
    return {
        "id": found.id,
        "name": found.name,
        "fullname": found.fullname,
        "plan": found.plan,
        "canPay": bool(found.can_pay),
        "createdAt": iso(found.created_at),
    }
