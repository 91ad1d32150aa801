"""Proof that a visitor who opened a mailed link is the user of its account: a live session or the password.

The link proves only the address. If an attacker created the account with another person's address, a click by that
person must not confirm it (attack O67).
"""

from collections.abc import Awaitable, Callable

from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.limits import FAILED_SIGN_INS_FROM_ADDRESS, network_of
from hubgate.server.accounts.model import User, Visitor
from hubgate.server.accounts.password_confirmation import lock_password, require_password
from hubgate.server.accounts.sessions import store as session_store
from hubgate.server.accounts.sessions.model import Session
from hubgate.server.errors import FieldErrors
from hubgate.server.storage.database import Tx

# Called in the transaction that needs the proof: checks that it is still valid, and locks it until the commit.
HoldProof = Callable[[Tx], Awaitable[None]]

_FIELD = "password"


async def prove(accounts: Accounts, user: User, session: Session | None, password: str, visitor: Visitor) -> HoldProof:
    """Require a session or the password; FieldErrors otherwise. A wrong password counts as a failed sign-in, for the
    account and for the client address."""
    if session is not None and session.user_id == user.id:
        return _with_session(session)
    if not password:
        raise FieldErrors({_FIELD: f"Type the password of {user.name}."})
    by_address = await accounts.limiter.take(FAILED_SIGN_INS_FROM_ADDRESS, network_of(visitor.ip))
    known_hash = await require_password(accounts, user, _FIELD, password)
    await accounts.limiter.refund(by_address)
    return lambda tx: lock_password(tx, user, _FIELD, known_hash)


def _with_session(session: Session) -> HoldProof:
    async def hold(tx: Tx) -> None:
        if not await session_store.lock(tx, session.user_id, session.id):
            raise FieldErrors({_FIELD: "You were signed out. Type the password of this account."})

    return hold
