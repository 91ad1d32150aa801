"""That a visitor who opened a mailed link is the user of the account it is about: by a live session, or the password.

The link proves the address alone. Whoever created an account with another's address must not have it confirmed by that
person's click (attack O67).
"""

from collections.abc import Awaitable, Callable

from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.limits import FAILED_SIGN_INS_FROM_ADDRESS, network_of
from hubgate.server.accounts.model import User, Visitor
from hubgate.server.accounts.password_again import hold_password, require_password
from hubgate.server.accounts.sessions import store as session_store
from hubgate.server.accounts.sessions.model import Session
from hubgate.server.errors import FieldErrors
from hubgate.server.storage.database import Tx

# In the unit that needed the proof: it still holds, and does until that unit ends.
HoldProof = Callable[[Tx], Awaitable[None]]

_FIELD = "password"


async def prove(accounts: Accounts, user: User, session: Session | None, password: str, visitor: Visitor) -> HoldProof:
    """FieldErrors without either. Wrong passwords count as failed sign-ins, of the account and of the address."""
    if session is not None and session.user_id == user.id:
        return _with_session(session)
    if not password:
        raise FieldErrors({_FIELD: f"Type the password of {user.name}."})
    by_address = await accounts.limiter.take(FAILED_SIGN_INS_FROM_ADDRESS, network_of(visitor.ip))
    known_hash = await require_password(accounts, user, _FIELD, password)
    await accounts.limiter.give_back(by_address)
    return lambda tx: hold_password(tx, user, _FIELD, known_hash)


def _with_session(session: Session) -> HoldProof:
    async def hold(tx: Tx) -> None:
        if not await session_store.hold(tx, session.user_id, session.id):
            raise FieldErrors({_FIELD: "You were signed out. Type the password of this account."})

    return hold
