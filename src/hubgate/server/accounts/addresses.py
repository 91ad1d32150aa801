"""Confirming and changing e-mail addresses: the new address is confirmed, the old address is notified.

A link proves that its reader controls the address; a session or the password proves that the account is theirs.
Without that proof, a new account's link leads to a password reset, which revokes everything created earlier (attack
O67).
"""

from collections.abc import Awaitable, Callable

from hubgate.server.accounts import store
from hubgate.server.accounts.account_locks import lock_account
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.emails import check_email
from hubgate.server.accounts.field_checks import FieldChecks
from hubgate.server.accounts.limits import (
    ADDRESS_CHANGE_MAILS,
    CONFIRMATION_MAILS,
    FAILED_SIGN_INS_FROM_ADDRESS,
    network_of,
)
from hubgate.server.accounts.links import mailed_links
from hubgate.server.accounts.links import store as link_store
from hubgate.server.accounts.links.model import Link, Purpose
from hubgate.server.accounts.model import User, Visitor
from hubgate.server.accounts.passwords import lock_password, require_password
from hubgate.server.accounts.sessions import store as session_store
from hubgate.server.accounts.sessions.model import Session
from hubgate.server.accounts.signup import mail_confirmation
from hubgate.server.errors import Conflict, FieldErrors, NotFound
from hubgate.server.mail import texts
from hubgate.server.storage.database import ConstraintViolated, Tx

# Called in the transaction that needs the proof: checks that it is still valid, and locks it until the commit.
LockProof = Callable[[Tx], Awaitable[None]]

_ADDRESS_TAKEN = "Another account already uses this address."
_ADDRESS_REPLACED = "This link is for an address that the account no longer uses."


async def resend_confirmation(accounts: Accounts, user: User) -> None:
    """Send the confirmation mail again."""
    if user.email_verified_at is not None:
        return
    await accounts.limiter.take(CONFIRMATION_MAILS, user.email)
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        await lock_account(tx, user)
        await mail_confirmation(accounts, tx, user, now)

    await accounts.db.write(unit)
    accounts.outbox.send_soon()


async def find_link(accounts: Accounts, secret: str, purpose: Purpose) -> tuple[Link, User]:
    """The link and its user, for the page that asks for confirmation."""
    link = await mailed_links.find(accounts.db, secret, purpose, accounts.clock())
    user = await store.user(accounts.db, link.user_id)
    if user is None:
        raise NotFound("This account was deleted.")
    return link, user


async def has_password(accounts: Accounts, user: User) -> bool:
    """Whether the user has a password. A user that an operator created may not have set one yet."""
    return await store.password_hash(accounts.db, user.id) is not None


async def confirm(accounts: Accounts, secret: str, session: Session | None, password: str, visitor: Visitor) -> None:
    """Confirm the address of an account; sessions and tokens stay valid. A rejected attempt leaves the link usable."""
    link, user = await find_link(accounts, secret, Purpose.VERIFY)
    lock_proof, now = await _require_proof(accounts, user, session, password, visitor), accounts.clock()

    async def unit(tx: Tx) -> None:
        await lock_account(tx, user)
        await lock_proof(tx)
        await mailed_links.use(tx, secret, Purpose.VERIFY, now)
        if not await store.verify_email(tx, user.id, link.email, now):
            raise NotFound(_ADDRESS_REPLACED)
        # Other confirmation links could still be exchanged for a reset.
        await link_store.remove_by_purpose(tx, user.id, Purpose.VERIFY)

    await accounts.db.write(unit)


async def exchange_for_reset(accounts: Accounts, secret: str) -> str:
    """Exchange a confirmation link for a reset link, for a reader of the mail without the account's password; returns
    the secret of the reset link."""
    link, now = await mailed_links.find(accounts.db, secret, Purpose.VERIFY, accounts.clock()), accounts.clock()

    async def unit(tx: Tx) -> str:
        user = await store.lock_user(tx, link.user_id)
        await mailed_links.use(tx, secret, Purpose.VERIFY, now)
        if user is None or user.email != link.email or user.email_verified_at is not None:
            raise NotFound(_ADDRESS_REPLACED)
        return await mailed_links.create(tx, Link(Purpose.RESET, user.id, user.email), now)

    return await accounts.db.write(unit)


async def request_change(accounts: Accounts, user: User, new: str, password: str) -> None:
    """Request a change of address. Nothing changes until the link sent to the new address is used."""
    checks = FieldChecks()
    new = checks.check("email", check_email, new)
    if new == user.email:
        checks.add_error("email", "This is already your address.")
    checks.raise_errors()
    known_hash = await require_password(accounts, user, "password", password)
    await accounts.limiter.take(ADDRESS_CHANGE_MAILS, new)
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        await lock_password(tx, user, "password", known_hash)
        # An earlier link may have been sent to a mistyped address, whose owner could take the account over.
        await link_store.remove_by_purpose(tx, user.id, Purpose.CHANGE_EMAIL)
        if await store.user_by_email(tx, new):
            # Notify the address, not the requester, so that nobody learns which addresses have accounts.
            await accounts.outbox.add(tx, texts.address_in_use(new, accounts.link("/login")))
            return
        secret = await mailed_links.create(tx, Link(Purpose.CHANGE_EMAIL, user.id, new), now)
        await accounts.outbox.add(tx, texts.confirm_address(new, accounts.link(f"/change-email/{secret}")))

    await accounts.db.write(unit)
    accounts.outbox.send_soon()


async def change(accounts: Accounts, secret: str, session: Session | None, password: str, visitor: Visitor) -> None:
    """Change the address. Requires proof that the visitor owns the account: someone who reads mail at a mistyped
    address must not get the account."""
    link, user = await find_link(accounts, secret, Purpose.CHANGE_EMAIL)
    lock_proof, now = await _require_proof(accounts, user, session, password, visitor), accounts.clock()

    async def unit(tx: Tx) -> None:
        before = await store.lock_user(tx, user.id)
        await lock_proof(tx)
        await mailed_links.use(tx, secret, Purpose.CHANGE_EMAIL, now)
        if before is None or not await store.change_email(tx, user.id, link.email, now):
            raise Conflict(_ADDRESS_TAKEN)
        # Links mailed to the old address must no longer work.
        await link_store.remove_all(tx, user.id)
        if before.email_verified_at is not None:
            # An unconfirmed address may belong to a stranger, who must not learn the new address.
            await accounts.outbox.add(tx, texts.address_changed(before.email, link.email, accounts.base_url))

    try:
        await accounts.db.write(unit)
    except ConstraintViolated:
        raise Conflict(_ADDRESS_TAKEN) from None
    accounts.outbox.send_soon()


async def _require_proof(
    accounts: Accounts, user: User, session: Session | None, password: str, visitor: Visitor
) -> LockProof:
    """Require proof that the visitor is the user of the account: a live session or the password; FieldErrors otherwise.

    The link proves only the address. If an attacker created the account with another person's address, a click by that
    person must not confirm it (attack O67). A wrong password counts as a failed sign-in, for the account and for
    the client address."""
    if session is not None and session.user_id == user.id:
        return _session_proof(session)
    if not password:
        raise FieldErrors({"password": f"Type the password of {user.name}."})
    by_address = await accounts.limiter.take(FAILED_SIGN_INS_FROM_ADDRESS, network_of(visitor.ip))
    known_hash = await require_password(accounts, user, "password", password)
    await accounts.limiter.refund(by_address)
    return lambda tx: lock_password(tx, user, "password", known_hash)


def _session_proof(session: Session) -> LockProof:
    async def lock(tx: Tx) -> None:
        if not await session_store.lock(tx, session.user_id, session.id):
            raise FieldErrors({"password": "You were signed out. Type the password of this account."})

    return lock
