"""Changing a password, and setting a new one through a mailed link."""

from hubgate.server.accounts import store
from hubgate.server.accounts.checking import check_field
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.emails import check_email
from hubgate.server.accounts.limits import MAILS_TO_RECIPIENT
from hubgate.server.accounts.links import mailed
from hubgate.server.accounts.links import store as link_store
from hubgate.server.accounts.links.model import Link, Purpose
from hubgate.server.accounts.model import User, Visitor
from hubgate.server.accounts.password_again import hold_password, require_password
from hubgate.server.accounts.passwords import check_password, hash_password
from hubgate.server.accounts.sessions import browsers
from hubgate.server.accounts.sessions import store as session_store
from hubgate.server.accounts.tokens import store as token_store
from hubgate.server.clock import iso
from hubgate.server.errors import NotFound
from hubgate.server.mail import texts
from hubgate.server.storage.database import Tx


async def change(accounts: Accounts, user: User, current: str, new: str, visitor: Visitor) -> str:
    """Ends every session; the value is for this browser's new cookie (attack O55)."""
    check_field("new_password", check_password, new)
    known_hash = await require_password(accounts, user, "current_password", current)
    password_hash, now = await hash_password(new), accounts.clock()

    async def unit(tx: Tx) -> str:
        await hold_password(tx, user, "current_password", known_hash)
        await store.set_password(tx, user.id, password_hash)
        # Whoever knew the old password may have a link waiting that would take the account over.
        await link_store.remove_of(tx, user.id, Purpose.CHANGE_EMAIL)
        await link_store.remove_of(tx, user.id, Purpose.RESET)
        if user.email_verified_at is not None:
            await _tell(accounts, tx, user, now, visitor)
        return await browsers.start_anew(tx, user.id, visitor, now)

    cookie = await accounts.db.write(unit)
    accounts.outbox.hurry()
    return cookie


async def ask_reset(accounts: Accounts, email: str) -> None:
    """The same for every address; an unknown one gets no mail."""
    email = check_field("email", check_email, email)
    place = await accounts.limiter.take(MAILS_TO_RECIPIENT, email)
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        user = await store.user_by_email(tx, email)
        if user is not None and user.disabled_at is None:
            await mail_reset(accounts, tx, user, now)
        else:
            # Saving takes most of the time, and time must not tell who has an account.
            await accounts.limiter.keep(tx, place)

    await accounts.db.write(unit)
    accounts.outbox.hurry()


async def mail_reset(accounts: Accounts, tx: Tx, user: User, now: int) -> str:
    """The link, which the operator's command line may show too."""
    secret = await mailed.make(tx, Link(Purpose.RESET, user.id, user.email), now)
    link = accounts.link(f"/reset/{secret}")
    await accounts.outbox.add(tx, texts.reset_password(user.email, link))
    return link


async def reset(accounts: Accounts, secret: str, new: str, visitor: Visitor) -> User:
    check_field("password", check_password, new)
    await mailed.look(accounts.db, secret, Purpose.RESET, accounts.clock())
    password_hash, now = await hash_password(new), accounts.clock()

    async def unit(tx: Tx) -> User:
        link = await mailed.take(tx, secret, Purpose.RESET, now)
        user = await store.user(tx, link.user_id)
        if user is None or not await store.verify_email(tx, user.id, link.email, now):
            raise NotFound("This link belongs to an address the account no longer has.")
        if user.email_verified_at is None:
            # Whoever made the account never proved the address: tokens made by then may be a stranger's.
            await token_store.remove_all(tx, user.id)
        await store.set_password(tx, user.id, password_hash)
        await session_store.remove_all(tx, user.id)
        await link_store.remove_all(tx, user.id)
        await _tell(accounts, tx, user, now, visitor)
        return user

    user = await accounts.db.write(unit)
    accounts.outbox.hurry()
    return user


async def _tell(accounts: Accounts, tx: Tx, user: User, now: int, visitor: Visitor) -> None:
    message = texts.password_changed(user.email, iso(now), visitor.ip, accounts.link("/reset"))
    await accounts.outbox.add(tx, message)
