"""Requires the password again, before actions that a borrowed browser must not perform."""

from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.limits import FAILED_SIGN_INS_OF_ACCOUNT
from hubgate.server.accounts.model import User
from hubgate.server.accounts.passwords import hashing_slot, password_matches
from hubgate.server.errors import FieldErrors
from hubgate.server.storage.database import Tx

NOT_YOURS = "This is not your password."


async def require_password(accounts: Accounts, user: User, field: str, given: str) -> str:
    """Check the password from the form field `field`, and return the stored hash. Failures count as failed sign-ins
    (attack O54).

    The password may change while it is compared: pass the hash to `lock_password`.
    """
    async with hashing_slot():
        place = await accounts.limiter.take(FAILED_SIGN_INS_OF_ACCOUNT, user.id)
        stored = await store.password_hash(accounts.db, user.id)
        if not await password_matches(given, stored) or stored is None:
            raise FieldErrors({field: NOT_YOURS})
        await accounts.limiter.refund(place)
    return stored


async def lock_password(tx: Tx, user: User, field: str, known_hash: str) -> None:
    """Lock the password in the transaction of the action that required it; FieldErrors if it has changed or the account
    was disabled. A request in flight must not let an intruder back in after a reset or after the account was
    disabled."""
    if not await store.lock_password(tx, user.id, known_hash):
        raise FieldErrors({field: NOT_YOURS})
