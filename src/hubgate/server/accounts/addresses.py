"""Proving an e-mail address, and moving to another one: confirmed there, told here."""

from hubgate.server.accounts import store
from hubgate.server.accounts.checking import Checking
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.emails import check_email
from hubgate.server.accounts.limits import MAILS_TO_RECIPIENT
from hubgate.server.accounts.links import mailed
from hubgate.server.accounts.links import store as link_store
from hubgate.server.accounts.links.model import Link, Purpose
from hubgate.server.accounts.model import User
from hubgate.server.accounts.password_again import require_password
from hubgate.server.accounts.signup import mail_confirmation
from hubgate.server.errors import Conflict, NotFound
from hubgate.server.mail import texts
from hubgate.server.storage.database import ConstraintViolated, Tx

_TAKEN = "Another account has this address by now."


async def ask_confirmation(accounts: Accounts, user: User) -> None:
    """Once more, for a mail that was lost."""
    if user.email_verified_at is not None:
        return
    await accounts.limiter.take(MAILS_TO_RECIPIENT, user.email)
    await accounts.db.write(lambda tx: mail_confirmation(accounts, tx, user, accounts.clock()))
    accounts.outbox.hurry()


async def look(accounts: Accounts, secret: str, purpose: Purpose) -> tuple[Link, User]:
    """What a link would do, for the page that asks before doing it."""
    link = await mailed.look(accounts.db, secret, purpose, accounts.clock())
    user = await store.user(accounts.db, link.user_id)
    if user is None:
        raise NotFound("This account is gone.")
    return link, user


async def confirm(accounts: Accounts, secret: str) -> None:
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        link = await mailed.take(tx, secret, Purpose.VERIFY, now)
        if not await store.verify_email(tx, link.user_id, link.email, now):
            raise NotFound("This link belongs to an address the account no longer has.")

    await accounts.db.write(unit)


async def ask_change(accounts: Accounts, user: User, new: str, password: str) -> None:
    """Nothing changes until the link at the new address is used."""
    checking = Checking()
    new = checking.field("email", check_email, new)
    if new == user.email:
        checking.refuse("email", "This is your address already.")
    checking.done()
    await require_password(accounts, user, "password", password)
    await accounts.limiter.take(MAILS_TO_RECIPIENT, new)
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        # An address that was mistyped before must not stay able to take the account over.
        await link_store.remove_of(tx, user.id, Purpose.CHANGE_EMAIL)
        if await store.user_by_email(tx, new):
            # Told to the address, not to the asker: who has an account is nobody's business.
            await accounts.outbox.add(tx, texts.address_in_use(new, accounts.link("/login")))
            return
        secret = await mailed.make(tx, Link(Purpose.CHANGE_EMAIL, user.id, new), now)
        await accounts.outbox.add(tx, texts.confirm_address(new, accounts.link(f"/change-email/{secret}")))

    await accounts.db.write(unit)
    accounts.outbox.hurry()


async def change(accounts: Accounts, secret: str) -> None:
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        link = await mailed.take(tx, secret, Purpose.CHANGE_EMAIL, now)
        user = await store.user(tx, link.user_id)
        if user is None or not await store.move_email(tx, user.id, link.email, now):
            raise Conflict(_TAKEN)
        # Links mailed to the old address must not open the account any more.
        await link_store.remove_all(tx, user.id)
        if user.email_verified_at is not None:
            # An address that was never proven may be a stranger's, to whom the new one is not told.
            await accounts.outbox.add(tx, texts.address_changed(user.email, link.email, accounts.base_url))

    try:
        await accounts.db.write(unit)
    except ConstraintViolated:
        raise Conflict(_TAKEN) from None
    accounts.outbox.hurry()
