"""Signing in: name or e-mail and password, with failures counted by account and by address (attack O54)."""

from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.emails import email_key
from hubgate.server.accounts.limits import FAILED_SIGN_INS_FROM_ADDRESS, FAILED_SIGN_INS_OF_ACCOUNT, network_of
from hubgate.server.accounts.model import User, Visitor
from hubgate.server.accounts.names import name_key
from hubgate.server.accounts.passwords import password_matches
from hubgate.server.accounts.sessions import browsers
from hubgate.server.errors import Forbidden
from hubgate.server.storage.database import Tx

NO_MATCH = "Name and password do not match."


class WrongPassword(Forbidden):
    """The one answer for an unknown account and for a wrong password."""

    def __init__(self) -> None:
        super().__init__(NO_MATCH)


async def sign_in(accounts: Accounts, username: str, password: str, visitor: Visitor) -> tuple[User, str]:
    """The user and the value for the session cookie."""
    user = await _named(accounts, username.strip())
    known = user.id if user else name_key(username.strip())
    by_account = await accounts.limiter.take(FAILED_SIGN_INS_OF_ACCOUNT, known)
    by_address = await accounts.limiter.take(FAILED_SIGN_INS_FROM_ADDRESS, network_of(visitor.ip))
    stored = await store.password_hash(accounts.db, user.id) if user else None
    if not await password_matches(password, stored) or user is None:
        raise WrongPassword
    await accounts.limiter.give_back(by_account)
    await accounts.limiter.give_back(by_address)
    if user.disabled_at is not None:
        raise Forbidden("This account is disabled. Ask whoever runs this hub.")

    async def unit(tx: Tx) -> str:
        return await browsers.start(tx, user.id, visitor, accounts.clock())

    return user, await accounts.db.write(unit)


async def _named(accounts: Accounts, username: str) -> User | None:
    if "@" in username:
        return await store.user_by_email(accounts.db, email_key(username))
    return await store.user_by_name(accounts.db, username)
