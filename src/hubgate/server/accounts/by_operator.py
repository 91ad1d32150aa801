"""What only the operator does to an account: switch it off and on, vouch for its address, help with its password."""

from collections.abc import Sequence

from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import store as org_store
from hubgate.server.accounts.passwords_changed import mail_reset
from hubgate.server.accounts.sessions import store as session_store
from hubgate.server.errors import Conflict
from hubgate.server.storage.database import Tx

PAGE = 500


async def every_user(accounts: Accounts) -> Sequence[User]:
    """Oldest first."""

    async def unit(tx: Tx) -> list[User]:
        found: list[User] = []
        while True:
            rows = await store.list_users(tx, "", found[-1].id if found else "", PAGE)
            found += [User(*row) for row in rows]
            if len(rows) < PAGE:
                return found

    return await accounts.db.read_long(unit)


async def every_organization(accounts: Accounts) -> Sequence[tuple[Organization, int]]:
    """Oldest first, each with its number of members."""

    async def unit(tx: Tx) -> list[tuple[Organization, int]]:
        found: list[tuple[Organization, int]] = []
        while True:
            rows = await org_store.list_all(tx, "", found[-1][0].id if found else "", PAGE)
            found += [(Organization(*tuple(row)[:-1]), row["members"]) for row in rows]
            if len(rows) < PAGE:
                return found

    return await accounts.db.read_long(unit)


async def disable(accounts: Accounts, user: User) -> None:
    """Its tokens do not work until it is enabled again; its sessions end, so that none comes back with it."""
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        await store.set_disabled(tx, user.id, now)
        await session_store.remove_all(tx, user.id)

    await accounts.db.write(unit)


async def enable(accounts: Accounts, user: User) -> None:
    await accounts.db.write(lambda tx: store.set_disabled(tx, user.id, None))


async def verify(accounts: Accounts, user: User) -> None:
    """The operator vouches for the address that the account has now."""
    now = accounts.clock()
    if not await accounts.db.write(lambda tx: store.verify_email(tx, user.id, user.email, now)):
        raise Conflict("The account got another address just now. Look at it and try again.")


async def send_reset(accounts: Accounts, user: User) -> str:
    """The link, also mailed."""
    if user.disabled_at is not None:
        raise Conflict(f"{user.name} is disabled. Run first: hubgate admin user enable {user.name}")
    now = accounts.clock()
    link = await accounts.db.write(lambda tx: mail_reset(accounts, tx, user, now))
    accounts.outbox.hurry()
    return link


async def set_billing(accounts: Accounts, user: User, can_pay: bool) -> None:
    await accounts.db.write(lambda tx: store.set_user_can_pay(tx, user.id, int(can_pay)))
