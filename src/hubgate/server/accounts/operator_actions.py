"""Accounts as operators see and change them: lists and counts; disable, enable, verify, reset."""

import sys

from msgspec import Struct

from hubgate.server.accounts import store
from hubgate.server.accounts.account_locks import lock_account
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.links import store as link_store
from hubgate.server.accounts.links.model import Purpose
from hubgate.server.accounts.model import PLANS, Organization, User
from hubgate.server.accounts.organizations import invitations
from hubgate.server.accounts.organizations import store as org_store
from hubgate.server.accounts.password_changes import mail_reset
from hubgate.server.accounts.search_documents import index_user
from hubgate.server.accounts.sessions import store as session_store
from hubgate.server.audit.model import SYSTEM, Actor
from hubgate.server.errors import Conflict
from hubgate.server.mail import store as mail_store
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.storage.database import Tx


async def every_user(accounts: Accounts) -> list[User]:
    """All users, oldest first."""
    return await accounts.db.read_long(lambda tx: store.list_users(tx, "", "", sys.maxsize))


async def every_organization(accounts: Accounts) -> list[tuple[Organization, int]]:
    """All organizations, oldest first, each with its number of members."""
    return await accounts.db.read_long(lambda tx: org_store.list_all(tx, "", "", sys.maxsize))


async def disable(accounts: Accounts, user: User, actor: Actor = SYSTEM) -> None:
    """Disable an account. Its tokens do not work until it is enabled again. Its sessions and mailed links are deleted
    permanently: an intruder may have requested a change of address. Its invitations are withdrawn, so that a disabled
    admin cannot let others in (attack O44). Its Spaces are paused until they are restarted."""
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        await store.set_disabled(tx, user.id, now)
        await index_user(tx, user.id)
        await store.increment_credentials_version(tx, user.id)
        # A concurrent invitation either commits before this point or fails because of the new version.
        await org_store.lock_organizations_of(tx, user.id)
        await invitations.withdraw_all_by(tx, user, actor, f"The account of {user.name} was disabled.", now)
        await session_store.remove_all(tx, user.id)
        await link_store.remove_all(tx, user.id)
        await accounts.pause_owned(tx, user.id, now)

    await accounts.db.write(unit)


async def enable(accounts: Accounts, user: User) -> None:
    async def unit(tx: Tx) -> None:
        await store.set_disabled(tx, user.id, None)
        await index_user(tx, user.id)

    await accounts.db.write(unit)


async def verify(accounts: Accounts, user: User) -> None:
    """Mark the current address as verified. Nothing is revoked: if a stranger may have created the account, use
    `send_reset`."""
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        if not await store.verify_email(tx, user.id, user.email, now):
            raise Conflict("The address of this account was changed by another request. Reload the list and try again.")
        await link_store.remove_by_purpose(tx, user.id, Purpose.VERIFY)

    await accounts.db.write(unit)


async def send_reset(accounts: Accounts, user: User) -> str:
    """Mail a reset link, and return it."""
    if user.disabled_at is not None:
        raise Conflict(f"{user.name} is disabled. Enable the account first.")
    now = accounts.clock()

    async def unit(tx: Tx) -> str:
        await lock_account(tx, user)
        return await mail_reset(accounts, tx, user, now)

    link = await accounts.db.write(unit)
    accounts.outbox.send_soon()
    return link


CURSOR = (str,)


class AccountCounts(Struct, frozen=True):
    users: int
    unverified: int
    disabled: int
    operators: int
    # By plan, including plans without organizations.
    organizations: dict[str, int]
    waiting_mails: int


async def count_accounts(accounts: Accounts) -> AccountCounts:
    async def unit(tx: Tx) -> AccountCounts:
        users = await store.count_users(tx)
        by_plan = await org_store.count_by_plan(tx)
        return AccountCounts(
            users["users"],
            users["unverified"],
            users["disabled"],
            users["operators"],
            {plan: by_plan.get(plan, 0) for plan in PLANS},
            await mail_store.count(tx),
        )

    return await accounts.db.read_long(unit)


async def list_users(accounts: Accounts, page: PageRequest, search: str) -> Page[User]:
    """Users, oldest first. `search` is part of a name, a full name or an address."""
    found = await accounts.db.read_long(lambda tx: store.list_users(tx, search, page.last_shown(), page.fetch_limit))
    return page_of(found, page, lambda user: (user.id,))


async def list_organizations(accounts: Accounts, page: PageRequest, search: str) -> Page[tuple[Organization, int]]:
    """Organizations, oldest first, each with its number of members. `search` is part of a name or a full name."""
    found = await accounts.db.read_long(lambda tx: org_store.list_all(tx, search, page.last_shown(), page.fetch_limit))
    return page_of(found, page, lambda listed: (listed[0].id,))
