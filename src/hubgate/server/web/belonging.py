"""Where a user belongs, as anyone may know it."""

from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization, User


async def organizations_of(accounts: Accounts, user: User) -> list[Organization]:
    """By name. None of a user who was deleted a moment ago."""
    person = await store.person(accounts.db, user.id)
    return [membership.organization for membership in person.memberships] if person else []
