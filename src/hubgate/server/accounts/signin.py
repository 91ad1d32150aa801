"""Sign-in with name or e-mail and password. Failures are counted by account and by client address (attack O54)."""

import asyncio

from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.emails import email_key
from hubgate.server.accounts.limits import FAILED_SIGN_INS_FROM_ADDRESS, FAILED_SIGN_INS_OF_ACCOUNT, network_of
from hubgate.server.accounts.model import User, Visitor
from hubgate.server.accounts.names import name_key
from hubgate.server.accounts.passwords import hashing_slot, password_matches
from hubgate.server.accounts.sessions import browser_sessions
from hubgate.server.accounts.sessions.model import Session
from hubgate.server.errors import Forbidden, Unprocessable
from hubgate.server.storage.database import Tx

NO_MATCH = "Wrong username or password."


class WrongPassword(Unprocessable):
    """The same error for an unknown account and for a wrong password."""

    def __init__(self) -> None:
        super().__init__(NO_MATCH)


async def sign_in(
    accounts: Accounts, username: str, password: str, visitor: Visitor, old: Session | None = None
) -> str:
    """Sign in and return the session cookie. `old`, this browser's previous session, is ended."""
    async with hashing_slot():
        user, known_hash = await _authenticate(accounts, username.strip(), password, visitor)
    if user.disabled_at is not None:
        raise Forbidden("This account is disabled. Contact the operator.")
    now = accounts.clock()

    async def unit(tx: Tx) -> str | None:
        # False if the password was changed or the account disabled during the comparison. That ended all sessions, so
        # no new session may start.
        if not await store.lock_password(tx, user.id, known_hash):
            return None
        return await browser_sessions.replace(tx, old, user.id, visitor, now)

    cookie = await accounts.db.write(unit)
    if cookie is None:
        raise WrongPassword
    return cookie


async def _authenticate(accounts: Accounts, username: str, password: str, visitor: Visitor) -> tuple[User, str]:
    """Check the password; returns the user and the stored hash. A failure counts against both rate limits."""
    # The address first: a blocked address must not be able to lock accounts.
    by_address = await accounts.limiter.take(FAILED_SIGN_INS_FROM_ADDRESS, network_of(visitor.ip))
    user = await _find_user(accounts, username)
    by_account = await accounts.limiter.take(
        FAILED_SIGN_INS_OF_ACCOUNT, user.id if user else f"nobody {name_key(username)}"
    )
    stored = await store.password_hash(accounts.db, user.id) if user else None
    if not await password_matches(password, stored) or user is None or stored is None:
        raise WrongPassword
    await asyncio.gather(accounts.limiter.refund(by_account), accounts.limiter.refund(by_address))
    return user, stored


async def sign_in_new_user(accounts: Accounts, user: User, visitor: Visitor, old: Session | None = None) -> str:
    """Sign in the user who has just created this account."""
    now = accounts.clock()
    return await accounts.db.write(lambda tx: browser_sessions.replace(tx, old, user.id, visitor, now))


async def _find_user(accounts: Accounts, username: str) -> User | None:
    if "@" in username:
        return await store.user_by_email(accounts.db, email_key(username))
    return await store.user_by_name(accounts.db, username)
