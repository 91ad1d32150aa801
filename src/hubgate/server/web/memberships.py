"""The public organization memberships of a user."""

from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization, User


async def organizations_of(accounts: Accounts, user: User) -> list[Organization]:
    """Return the user's organizations by name; empty if the user was deleted concurrently."""
    person = await store.person(accounts.db, user.id)
    return [membership.organization for membership in person.memberships] if person else []
