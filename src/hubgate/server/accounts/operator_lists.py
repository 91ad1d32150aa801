"""Lists and counts of users and organizations, for operators."""

from dataclasses import dataclass

from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import PLANS, Organization, User
from hubgate.server.accounts.organizations import store as org_store
from hubgate.server.mail import store as mail_store
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.storage.database import Tx

CURSOR = (str,)


@dataclass(frozen=True, slots=True)
class Counts:
    users: int
    unverified: int
    disabled: int
    operators: int
    # By plan, including plans without organizations.
    organizations: dict[str, int]
    waiting_mails: int


async def counts(accounts: Accounts) -> Counts:
    async def unit(tx: Tx) -> Counts:
        users = await store.count_users(tx)
        by_plan = await org_store.count_by_plan(tx)
        return Counts(
            users["users"],
            users["unverified"],
            users["disabled"],
            users["operators"],
            {plan: by_plan.get(plan, 0) for plan in PLANS},
            await mail_store.count(tx),
        )

    return await accounts.db.read_long(unit)


async def users(accounts: Accounts, asked: PageRequest, search: str) -> Page[User]:
    """Users, oldest first. `search` is part of a name, a full name or an address."""
    found = await accounts.db.read_long(lambda tx: store.list_users(tx, search, asked.last_shown(), asked.fetch))
    return page_of(found, asked, lambda user: (user.id,))


async def organizations(accounts: Accounts, asked: PageRequest, search: str) -> Page[tuple[Organization, int]]:
    """Organizations, oldest first, each with its number of members. `search` is part of a name or a full name."""
    found = await accounts.db.read_long(lambda tx: org_store.list_all(tx, search, asked.last_shown(), asked.fetch))
    return page_of(found, asked, lambda listed: (listed[0].id,))
